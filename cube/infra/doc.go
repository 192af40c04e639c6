// Package infra has what CUBE tasks run on: containers and the backends that
// launch them, and resources with the infras that provision them (CUBE, sections
// 5 and 7). Configs are typed objects that any process can carry; what is live
// ([Container], [Handle]) stays in one.
package infra
