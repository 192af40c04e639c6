package guest

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/internal/bounded"
)

// TestUnpackDirectoryTwice: of the entries for one directory the last one says what it
// is, whatever is unpacked into it in between.
func TestUnpackDirectoryTwice(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o500},
		{Typeflag: tar.TypeReg, Name: "d/f", Mode: 0o600},
		{Typeflag: tar.TypeDir, Name: "./d", Mode: 0o711},
	} {
		h.Uid, h.Gid = os.Getuid(), os.Getgid()
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err := errors.Join(w.Close(), err); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	u := unpacker{root: root, way: bounded.NewWay(root)}
	defer u.way.Close()
	if err := u.unpack(tar.NewReader(&archive)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "d"))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o711 {
		t.Errorf("the directory's mode is %o", got)
	}
}
