package audit

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
)

// checkTasks holds the tasks that lie on this machine against the digests that the lock
// has of them, and the trials' own digests against each other.
func (c *check) checkTasks() {
	c.checkSums()
	if c.lock == nil {
		return
	}
	pinned := map[string]string{} // digest by path
	missing := 0
	for i := range c.lock.Trials {
		t := &c.lock.Trials[i].Task
		if t.Type != jobdir.LocalTask || t.Path == nil {
			continue
		}
		digest, seen := pinned[*t.Path]
		if seen && digest == t.Digest {
			continue
		}
		if seen {
			c.find(Finding{Kind: Lock, File: scan.LockFile, Message: fmt.Sprintf("has two digests of the task in %q", *t.Path)})
			continue
		}
		pinned[*t.Path] = t.Digest
		if !c.checkTask(t) {
			missing++
		}
	}
	if missing > 0 {
		c.unchecked("whether %s are still what ran: they do not lie here, seen from this directory", console.Count(missing, "task"))
	}
}

// checkTask reports whether the task is there.
func (c *check) checkTask(t *jobdir.TaskLock) bool {
	if _, err := os.Stat(filepath.Join(*t.Path, "task.toml")); err != nil {
		return false
	}
	digest, _, err := harbor.PackageHash(*t.Path)
	switch {
	case err != nil:
		c.find(Finding{Kind: Task, Message: fmt.Sprintf("%q in %s %s", t.Name, *t.Path, unreadable(err))})
	case digest != t.Digest:
		c.find(Finding{Kind: Task, Message: fmt.Sprintf("%q in %s is not the task that ran: it was changed or swapped since (%s, the lock has %s)", t.Name, *t.Path, digest, t.Digest)})
	}
	return true
}

// checkSums finds trials of one task that saw different contents of it.
func (c *check) checkSums() {
	first := map[string]*trialFiles{}
	for i := range c.trials {
		t := &c.trials[i]
		if t.result == nil {
			continue
		}
		key := taskKey(t.result.TaskID)
		if first[key] == nil {
			first[key] = t
			continue
		}
		if a, b := first[key].result.TaskChecksum, t.result.TaskChecksum; a != b {
			c.find(Finding{
				Kind: Task, Trial: t.name,
				Message: fmt.Sprintf("ran another content of task %q than trial %q (%s and %s)", t.result.TaskName, first[key].name, cmp.Or(b, "none"), cmp.Or(a, "none")),
			})
		}
	}
}

func taskKey(id jobdir.TaskID) string {
	commit, ref := "", ""
	if id.GitCommitID != nil {
		commit = *id.GitCommitID
	}
	if id.Ref != nil {
		ref = *id.Ref
	}
	return fmt.Sprintf("%q", []string{string(id.Kind), id.Path, id.GitURL, commit, id.Org, id.Name, ref})
}
