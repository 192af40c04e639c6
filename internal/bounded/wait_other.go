//go:build !unix

package bounded

const dontWait = 0
