package imagetest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Listing describes a tree: one line per path.
func Listing(t testing.TB, root string) map[string]string {
	t.Helper()
	lines := map[string]string{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == "." {
			return err
		}
		lines[filepath.ToSlash(rel)] = Describe(t, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// Describe is the line of one path.
func Describe(t testing.TB, path string) string {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		opaque := ""
		if isOpaque(path) {
			opaque = " opaque"
		}
		return fmt.Sprintf("dir %o%s", st.Mode&0o7777, opaque)
	case unix.S_IFLNK:
		target, err := os.Readlink(path)
		if err != nil {
			t.Fatal(err)
		}
		return "link " + target
	case unix.S_IFREG:
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 40 {
			return fmt.Sprintf("file %o %d bytes", st.Mode&0o7777, len(data))
		}
		return fmt.Sprintf("file %o %s", st.Mode&0o7777, data)
	case unix.S_IFIFO:
		return fmt.Sprintf("fifo %o", st.Mode&0o7777)
	case unix.S_IFCHR:
		if st.Rdev == 0 {
			return "whiteout"
		}
	}
	return fmt.Sprintf("mode %o", st.Mode)
}

func isOpaque(dir string) bool {
	for _, attr := range []string{"trusted.overlay.opaque", "user.overlay.opaque"} {
		var value [2]byte
		if n, err := unix.Lgetxattr(dir, attr, value[:]); err == nil && n == 1 && value[0] == 'y' {
			return true
		}
	}
	return false
}
