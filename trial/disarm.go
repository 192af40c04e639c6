package trial

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/environment"
)

const (
	// closedMode is that of a trial's directory while a sandbox may write below it.
	closedMode = 0o700
	// openMode bounds what it is afterwards, that of the directory around it.
	openMode = 0o755
)

// makeDir makes a trial's directory, closed to other users: the log directories in it
// are open to every user, for those of the sandbox.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, closedMode); err != nil {
		return err
	}
	// A link would have the trial write somewhere else.
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory but a link: remove it", dir)
	}
	if err := os.Chmod(dir, closedMode); err != nil {
		return err
	}
	return environment.MakeLogDirs(dir)
}

// disarm makes harmless what sandboxes left in the trial's directory. Where that is not
// possible it stays closed.
func (a *attempt) disarm() {
	done := environment.Disarm(a.dir)
	if done.Removed.Total > 0 {
		a.warn("removed from what the sandbox left: %v", done.Removed)
	}
	if done.Changed.Total > 0 {
		a.warn("took the rights of another user from what the sandbox left: %v", done.Changed)
	}
	if done.Left.Total > 0 {
		a.warn("the trial's directory stays closed to other users, since some of what the sandbox left could not be made harmless: %v", done.Left)
	}
	a.harmless = done.Left.Total == 0 && a.sandbox() == nil // and not one that could not be removed
}

// open opens the trial's directory to those that the job's directory is open to.
func (a *attempt) open() {
	if !a.harmless {
		return
	}
	around, err := os.Stat(filepath.Dir(a.dir))
	if err == nil {
		err = os.Chmod(a.dir, around.Mode().Perm()&openMode|closedMode)
	}
	if err != nil {
		a.warn("opening the trial's directory to other users: %v", err)
	}
}
