//go:build unix

package trial_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestPlantedLogs: whatever an agent puts in the place of its logs or of the trajectory, the
// trial is judged, nothing outside the directory is read or written, and nothing waits.
func TestPlantedLogs(t *testing.T) { //nolint:tparallel // one after the other: they share the file that nothing may change
	t.Parallel()
	const private = "what is outside"
	for name, c := range map[string]struct {
		plant func(dir, outside string) error
		made  bool // a trajectory
	}{
		"trajectory, a pipe":      {func(dir, _ string) error { return syscall.Mkfifo(filepath.Join(dir, "trajectory.json"), 0o666) }, true},
		"trajectory, a link":      {func(dir, outside string) error { return os.Symlink(outside, filepath.Join(dir, "trajectory.json")) }, true},
		"trajectory, a hard link": {func(dir, outside string) error { return os.Link(outside, filepath.Join(dir, "trajectory.json")) }, true},
		"trajectory, a directory": {func(dir, _ string) error { return os.MkdirAll(filepath.Join(dir, "trajectory.json", "x"), 0o755) }, true},
		"trajectory, a file": {func(dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, "trajectory.json"), []byte("{"), 0o444)
		}, true},
		"logs, a pipe": {func(dir, _ string) error {
			return errorsOf(os.Remove(filepath.Join(dir, "pi.txt")), syscall.Mkfifo(filepath.Join(dir, "pi.txt"), 0o666))
		}, false},
		"logs, a link": {func(dir, outside string) error {
			return errorsOf(os.Remove(filepath.Join(dir, "pi.txt")), os.Symlink(outside, filepath.Join(dir, "pi.txt")))
		}, false},
		"logs, a loop": {func(dir, _ string) error {
			return errorsOf(os.Remove(filepath.Join(dir, "pi.txt")), os.Symlink("pi.txt", filepath.Join(dir, "pi.txt")))
		}, false},
		"logs, a directory": {func(dir, _ string) error {
			return errorsOf(os.Remove(filepath.Join(dir, "pi.txt")), os.MkdirAll(filepath.Join(dir, "pi.txt", "x"), 0o755))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outside := filepath.Join(t.TempDir(), "outside")
			if err := os.WriteFile(outside, []byte(message(private, "", "")), 0o644); err != nil {
				t.Fatal(err)
			}
			m := &mine{}
			b := withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules(fake.Print(message("x", "", "")), func(_ context.Context, p *fake.Process) (int, error) {
				return 0, c.plant(p.Sandbox.Path("/logs/agent"), outside)
			})}), mineFile)
			res := b.run(t)
			if res.ExceptionInfo != nil || rewardsText(res) != "{'reward': 1.0}" {
				t.Errorf("exception %+v", res.ExceptionInfo)
			}
			file := filepath.Join(b.dir, "agent", "trajectory.json")
			info, err := os.Lstat(file)
			if made := err == nil && info.Mode().IsRegular(); made != c.made {
				t.Errorf("the trajectory is %v, %v", info, err)
			}
			if data, err := os.ReadFile(outside); err != nil || string(data) != message(private, "", "") {
				t.Errorf("what is outside is %q, %v", data, err)
			}
			if c.made {
				if made := readTrajectory(t, b.dir, "agent/trajectory.json"); len(made.Steps) != 1 || strings.Contains(readText(t, b.dir, "agent/trajectory.json"), private) {
					t.Errorf("trajectory %+v", made)
				}
			}
		})
	}
}

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}
