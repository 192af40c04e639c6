package frames

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is the room in a pipe, in bytes. That of one frame with its header is more than
// a pipe has without being asked, so that each had to be read in the middle of its writing.
const pipeSize = 2 * MaxFiles

// Widen makes room in a pipe for several frames, where f is one and the kernel has the room:
// without it all is slower, and nothing else.
func Widen(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
}
