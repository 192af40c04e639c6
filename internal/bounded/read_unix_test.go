//go:build unix

package bounded_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/internal/bounded"
)

// TestOpenInOpensFilesOnly plants in a directory what is no file of it.
func TestOpenInOpensFilesOnly(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		plant func(path string) error
		want  error
	}{
		{"link out", func(p string) error { return os.Symlink(outside, p) }, bounded.ErrLeadsOut},
		{"relative link out", func(p string) error { return os.Symlink("../../../../../../../../etc/passwd", p) }, bounded.ErrLeadsOut},
		{"link to a device", func(p string) error { return os.Symlink(os.DevNull, p) }, bounded.ErrLeadsOut},
		{"absolute dangling link", func(p string) error { return os.Symlink(p+".none", p) }, fs.ErrNotExist},
		{"dangling link", func(p string) error { return os.Symlink("nowhere", p) }, fs.ErrNotExist},
		{"loop", func(p string) error { return os.Symlink(filepath.Base(p), p) }, nil},
		{"pipe", func(p string) error { return syscall.Mkfifo(p, 0o600) }, bounded.ErrNotRegular},
		{"socket", listen, bounded.ErrNotRegular},
		{"directory", func(p string) error { return os.Mkdir(p, 0o700) }, bounded.ErrNotRegular},
		{"nothing", func(string) error { return nil }, fs.ErrNotExist},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			path := filepath.Join(dir, "f")
			if err := c.plant(path); err != nil {
				t.Fatal(err)
			}
			data, err := bounded.ReadIn(dir, "f", 100)
			if err == nil || data != nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("read %q, %v; want %v", data, err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not name %s", err, path)
			}
		})
	}
}

// shortDir is a directory whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func listen(path string) error {
	l, err := net.Listen("unix", path) //nolint:noctx // it only makes the socket
	if err != nil {
		return err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	return l.Close()
}

// TestOpenInFollowsLinksInside: a link within the directory is as good as its target.
func TestOpenInFollowsLinksInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "there"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"f": "there", "absolute": filepath.Join(dir, "there")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if data, err := bounded.ReadIn(dir, name, 100); err != nil || string(data) != "x" {
			t.Errorf("%s: read %q, %v", name, data, err)
		}
	}
}
