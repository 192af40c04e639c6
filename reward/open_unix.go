//go:build unix

package reward

import "syscall"

// dontWait keeps opening from waiting for the other end of a pipe.
const dontWait = syscall.O_NONBLOCK
