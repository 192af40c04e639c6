package environment

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// capable reports whether a file has capabilities, or may have some.
func capable(root *os.Root, name string) bool {
	_, err := unix.Lgetxattr(filepath.Join(root.Name(), name), "security.capability", nil)
	return err != unix.ENODATA && err != unix.ENOTSUP //nolint:errorlint // numbers of the kernel are never wrapped
}
