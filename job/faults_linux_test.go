package job_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// smallDisk mounts a file system of so many bytes, and returns it with a
// function that makes it larger.
func smallDisk(t *testing.T, size string) (dir string, grow func(size string)) {
	t.Helper()
	need.Root(t)
	dir = filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		need.That(t, "mount", false, "needs to mount file systems: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func(size string) {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size="+size); err != nil {
			t.Fatal(err)
		}
	}
}

// readOnly makes a directory read-only for whoever opens something in it from
// now on, until the returned function is called.
func readOnly(t *testing.T, dir string) (restore func()) {
	t.Helper()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		need.That(t, "mount", false, "needs to mount file systems: "+err.Error())
	}
	if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	restore = func() {
		once.Do(func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(restore)
	return restore
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk, grow := smallDisk(t, "600k")
	h := newHarness(t, writeDataset(t, "a", "b", "c", "d", "e", "f"), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", fake.Write("/logs/agent/log", strings.Repeat("x", 150<<10))), grant("1"),
	}})
	h.cfg.JobsDir, h.cfg.NConcurrentTrials = disk, 2
	if err := h.fails(t, "no space left on device"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the error is not ENOSPC: %v", err)
	}
	checkFiles(t, disk)
	finished := h.backend.Count(fake.OpCreate)

	// With room again the job goes on where it stands.
	grow("16m")
	out := h.run(t)
	if s := out.Result.Stats; s.NCompletedTrials != 6 || s.NErroredTrials != 0 || len(out.Records) != 6 {
		t.Errorf("after the disk has grown: %+v", s)
	}
	if n := h.backend.Count(fake.OpCreate) - finished; n >= 6 {
		t.Errorf("all %d trials were run again", n)
	}
	checkFiles(t, disk)
}

func TestDiskThatIsFullFromTheStart(t *testing.T) {
	t.Parallel()
	disk, _ := smallDisk(t, "64k")
	if err := os.WriteFile(filepath.Join(disk, "other"), make([]byte, 64<<10), 0o644); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	h := newHarness(t, writeDataset(t, "a"), fake.Config{})
	h.cfg.JobsDir = disk
	_ = h.fails(t, "no space left on device")
	checkFiles(t, disk)
	if n := h.backend.Count(fake.OpCreate); n != 0 {
		t.Errorf("%d sandboxes were made", n)
	}
}

func TestReadOnlyJobsDirectory(t *testing.T) {
	t.Parallel()
	need.Root(t)
	h := newHarness(t, writeDataset(t, "a"), fake.Config{})
	readOnly(t, h.cfg.JobsDir)
	if err := h.fails(t, "read-only file system"); !errors.Is(err, syscall.EROFS) {
		t.Errorf("the error is not EROFS: %v", err)
	}
	if n := h.backend.Count(fake.OpCreate); n != 0 {
		t.Errorf("%d sandboxes were made", n)
	}
}

func TestDirectoryThatTurnsReadOnly(t *testing.T) {
	t.Parallel()
	need.Root(t)
	var h *harness
	var restore func()
	h = newHarness(t, writeDataset(t, "a", "b", "c"), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", fake.Each(fake.Exit(0), func(context.Context, *fake.Process) (int, error) {
			restore = readOnly(t, h.dir())
			return 0, nil
		}, fake.Exit(0))), grant("1"),
	}})
	h.cfg.NConcurrentTrials = 1
	if err := h.fails(t, "read-only file system"); !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		t.Errorf("the error is not EROFS: %v", err)
	}
	restore()
	checkFiles(t, h.dir())
	out := h.run(t)
	if s := out.Result.Stats; s.NCompletedTrials != 3 || s.NErroredTrials != 0 {
		t.Errorf("when it can be written again: %+v", s)
	}
	if n := h.backend.Count(fake.OpCreate); n != 4 {
		t.Errorf("%d sandboxes were made, want 4: the finished trial is kept", n)
	}
}
