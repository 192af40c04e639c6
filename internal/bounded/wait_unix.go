//go:build unix

package bounded

import "syscall"

// dontWait keeps an open from waiting for the other end of a pipe.
const dontWait = syscall.O_NONBLOCK
