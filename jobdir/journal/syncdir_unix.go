//go:build unix

package journal

import (
	"errors"
	"os"
	"syscall"
)

// syncDir waits until names in a directory are on the disk. File systems that
// cannot do that are left to their own care.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
