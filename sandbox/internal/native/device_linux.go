package native

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
)

// devices are those that every container has (OCI runtime specification,
// "Default Devices").
var devices = []struct {
	name         string
	major, minor uint32
}{
	{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0},
}

// deviceLinks are those that every container has in /dev.
var deviceLinks = [][2]string{
	{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"},
	{"pts/ptmx", "ptmx"}, {"/proc/kcore", "core"},
}

// devices fills /dev, which is a new and empty file system. The root of a user
// namespace gets the host's nodes.
func (r root) devices(bound bool) error {
	dev, err := rootfs.Lookup(r.fd, "/dev", rootfs.MakeNothing)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dev) }()
	for _, d := range devices {
		if bound {
			err = r.bind(Mount{Source: "/dev/" + d.name, Target: "/dev/" + d.name})
		} else {
			err = unix.Mknodat(dev, d.name, unix.S_IFCHR|0o666, int(unix.Mkdev(d.major, d.minor)))
		}
		if err != nil {
			return fmt.Errorf("%q: %w", d.name, err)
		}
	}
	for _, l := range deviceLinks {
		if err := unix.Symlinkat(l[0], dev, l[1]); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("%q: %w", l[1], err)
		}
	}
	return nil
}
