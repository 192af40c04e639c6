//go:build !unix

package reward

const dontWait = 0
