package guest

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// writeFile writes a short file of a kernel, which takes it in one piece. Package os asks
// for each file whether it can be waited for, with five calls more.
func writeFile(name, text string, mode uint32) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, mode)
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	if _, err := unix.Write(fd, []byte(text)); err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}
