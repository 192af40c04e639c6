package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
)

// TestRestrict: with each of its two ways a restriction reaches what is mounted
// below, and mounts that another one hides are no error.
func TestRestrict(t *testing.T) {
	t.Parallel()
	need.Root(t)
	for name, restrict := range map[string]func(fd int, flags uintptr) error{"one call": Restrict, "each mount": restrictEach} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			done := make(chan error)
			go func() {
				runtime.LockOSThread() // and not unlocked, so that the namespace ends with the thread
				done <- restrictBoth(dir, restrict)
			}()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func restrictBoth(dir string, restrict func(fd int, flags uintptr) error) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := Detach(); err != nil {
		return err
	}
	sub := filepath.Join(dir, "sub")
	for _, at := range []string{dir, sub, filepath.Join(sub, "deep"), sub} {
		if err := errors.Join(os.MkdirAll(at, 0o755), unix.Mount("tmpfs", at, "tmpfs", 0, "")); err != nil {
			return err
		}
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := restrict(fd, unix.MS_RDONLY|unix.MS_NOSUID); err != nil {
		return err
	}
	for _, at := range []string{dir, sub} {
		var st unix.Statfs_t
		if err := unix.Statfs(at, &st); err != nil {
			return err
		}
		if st.Flags&unix.MS_RDONLY == 0 || st.Flags&unix.MS_NOSUID == 0 {
			return errors.New(at + " is not restricted")
		}
	}
	return nil
}
