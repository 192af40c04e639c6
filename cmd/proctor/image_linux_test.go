package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
)

// TestImagesThatDoNotFit: a job whose images would not fit on the disk is
// refused with the figures before anything runs, and so is getting them.
func TestImagesThatDoNotFit(t *testing.T) {
	need.Root(t)
	need.That(t, "rootfs", os.Getenv(need.RootfsVar) != "", need.RootfsVar+" is not set")
	layout, err := mirror()
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	small := filepath.Join(p.dir, "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=16m"); err != nil {
		need.That(t, "mount", false, "cannot mount a small disk: "+err.Error())
	}
	defer func() {
		if err := unix.Unmount(small, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	task := filepath.Join(p.dir, "task")
	for name, text := range map[string]string{
		"task.toml": "[environment]\ndocker_image = \"debian:bookworm-slim\"\n", "instruction.md": "", "environment/readme": "", "tests/test.sh": "", "solution/solve.sh": "",
	} {
		at := filepath.Join(task, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"run", "-p", task, "-e", "sandbox", "--ek", "mirror=" + layout, "-o", filepath.Join(p.dir, "jobs"), "--job-name", "j"},
		{"image", "pull", "-p", task, "--mirror", layout},
	} {
		cmd := p.command(args...)
		cmd.Env = append(cmd.Env, "PROCTOR_CACHE_DIR="+small)
		done := finish(t, cmd)
		if done.code != exitUsage || !strings.Contains(done.stderr, "the images that are not there yet (1) need about 0.") || !strings.Contains(done.stderr, "GB are free") {
			t.Errorf("%s: exit code %d, want %d with the figures: %s", args[0], done.code, exitUsage, done.stderr)
		}
		if _, err := os.Stat(filepath.Join(p.dir, "jobs", "j", "result.json")); err == nil {
			t.Error("the job has a result, want that nothing was run")
		}
	}
}
