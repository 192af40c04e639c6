//go:build unix

package trial_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestWhatASandboxLeavesIsDisarmed: while it runs other users cannot reach the open log
// directories; afterwards nothing in them gives a right or makes somebody wait.
func TestWhatASandboxLeavesIsDisarmed(t *testing.T) {
	t.Parallel()
	var b *bench
	var during fs.FileMode
	leave := fake.Rule{Match: fake.On("solve.sh", nil).Match, Do: func(_ context.Context, p *fake.Process) (int, error) {
		info, err := os.Stat(b.dir)
		if err != nil {
			return 1, err
		}
		during = info.Mode().Perm()
		shell, pipe := filepath.Join(b.dir, "agent", "shell"), filepath.Join(b.dir, "agent", "pipe")
		return 0, errors.Join(os.WriteFile(shell, nil, 0o600), os.Chmod(shell, 0o777|fs.ModeSetuid), syscall.Mkfifo(pipe, 0o600))
	}}
	b = newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{leave, fake.On("(/tests/test.sh", fake.Write("/logs/verifier/reward.txt", "1"))}})
	if err := os.Chmod(b.cfg.TrialsDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if res := b.run(t); rewardsText(res) != one {
		t.Errorf("rewards %s, exception %+v", rewardsText(res), res.ExceptionInfo)
	}
	if during != 0o700 {
		t.Errorf("while the sandbox ran the trial's directory was %o", during)
	}
	for name, want := range map[string]fs.FileMode{".": 0o755 | fs.ModeDir, "agent": 0o755 | fs.ModeDir, "verifier": 0o755 | fs.ModeDir, "agent/shell": 0o755} {
		if info, err := os.Stat(filepath.Join(b.dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info, err, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(b.dir, "agent", "pipe")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the pipe is there: %v", err)
	}
	notes, err := os.ReadFile(filepath.Join(b.dir, "proctor.json"))
	if err != nil || !strings.Contains(string(notes), "agent/pipe") || !strings.Contains(string(notes), "agent/shell") {
		t.Errorf("proctor.json does not tell: %s, %v", notes, err)
	}
}

// TestTrialDirectoryThatIsALink: a trial writes nothing through it.
func TestTrialDirectoryThatIsALink(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask(), fake.Config{})
	outside := t.TempDir()
	if err := os.Symlink(outside, b.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Run(t.Context(), b.cfg, 1); err == nil || !strings.Contains(err.Error(), b.dir) {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("outside there are %v, %v", entries, err)
	}
}
