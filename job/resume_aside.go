package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/jobdir/journal"
)

// orphansDir is where directories go that belong to no trial of a resumed job:
// beside the jobs, not inside one, for a resuming Harbor deletes directories
// without a result inside. Below it each job has a directory of its name.
const orphansDir = ".set-aside"

// setEarlierAside makes room for a trial that runs again, and returns the
// number of the attempt that it is.
func (p *Prepared) setEarlierAside(i int, j *journal.Writer) (attempt int, err error) {
	why, again := p.Earlier[i]
	if !again {
		return 1, nil
	}
	dir := filepath.Join(p.Config.Dir(), p.Trials[i].TrialName)
	attempt, err = setLatestAside(dir, why, j)
	if err != nil {
		return 0, fmt.Errorf("keeping the earlier attempt of trial %q: %w", p.Trials[i].TrialName, err)
	}
	return attempt, nil
}

// setLatestAside sets the attempt aside whose files lie in a trial's directory,
// if there are any, and returns the number of the next.
func setLatestAside(dir, why string, j *journal.Writer) (next int, err error) {
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		return 0, fmt.Errorf("%s is not a directory: remove it", dir)
	}
	n, err := nextAttempt(dir)
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	if len(entries) == 1 && entries[0].Name() == attemptsDir {
		return n, nil
	}
	return n + 1, setAside(dir, n, why, j)
}

// nextAttempt is the number of the attempt whose files lie in a trial's
// directory: one more than those set aside.
func nextAttempt(dir string) (int, error) {
	n := 1
	info, err := os.Lstat(filepath.Join(dir, attemptsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return 0, err
	}
	if !info.IsDir() {
		return 0, fmt.Errorf("%s is not a directory: remove it", filepath.Join(dir, attemptsDir))
	}
	entries, err := os.ReadDir(filepath.Join(dir, attemptsDir))
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if m, err := strconv.Atoi(e.Name()); err == nil && m >= n {
			n = m + 1
		}
	}
	return n, nil
}

// setOrphansAside moves directories away that belong to no trial. Who wrote them may have
// been killed before secrets were taken out of their files.
func (p *Prepared) setOrphansAside(j *journal.Writer, secrets *redact.Set) error {
	if len(p.Orphans) == 0 {
		return nil
	}
	to := p.OrphansDir
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("setting directories aside: %w", err)
	}
	for _, name := range p.Orphans {
		if err := j.AppendSync(journal.Entry{Kind: journal.SetAside, Trial: name, Reason: "no trial of the job fits"}); err != nil {
			return err
		}
		dir := filepath.Join(p.Config.Dir(), name)
		if err := redact.Tree(dir, secrets, nil); err != nil {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s: files may still hold secrets: %v", dir, err))
		}
		if err := moveTo(dir, to); err != nil {
			return fmt.Errorf("setting directory %q aside: %w", name, err)
		}
	}
	return nil
}

// moveTo moves a directory into another, under a name that is free there.
func moveTo(dir, to string) error {
	name := filepath.Base(dir)
	target := filepath.Join(to, name)
	for n := 2; ; n++ {
		if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
			return os.Rename(dir, target)
		} else if err != nil {
			return err
		}
		target = filepath.Join(to, fmt.Sprintf("%s.%d", name, n))
	}
}
