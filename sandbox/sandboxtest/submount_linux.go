package sandboxtest

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// submount mounts an empty file system at a new directory in dir, and returns that.
func submount(t testing.TB, dir string) string {
	t.Helper()
	at, err := os.MkdirTemp(dir, "mounted")
	if err != nil {
		t.Fatal(err)
	}
	err = unix.Mount("tmpfs", at, "tmpfs", 0, "size=16m,mode=755")
	if errors.Is(err, unix.EPERM) {
		t.Skip("mounting a file system is not permitted here")
	}
	if err != nil {
		t.Fatalf("mounting a file system at %q: %v", at, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Errorf("unmounting %q: %v", at, err)
		}
	})
	return at
}
