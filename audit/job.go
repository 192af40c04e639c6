package audit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/score"
)

func parseConfig(data []byte) (jobdir.Config, error) {
	cfg, _, err := jobdir.ParseConfig(data, jobdir.JSON, time.Time{})
	return cfg, err
}

// readJournal reads the journal. Lines that cannot be read are findings, and the others
// are used.
func (c *check) readJournal() error {
	state, err := journal.LoadState(c.dir)
	if _, damaged := errors.AsType[*journal.Error](err); err != nil && !damaged {
		c.find(Finding{Kind: Journal, File: journal.File, Message: unreadable(err)})
		return nil
	}
	if err != nil {
		c.find(Finding{Kind: Journal, File: journal.File, Message: "is damaged, which no crash does: " + exception.PlainText(err)})
	}
	if state.Chain.Lines > 0 {
		c.state = state
	}
	return nil
}

// checkJournal looks at the journal as a whole.
func (c *check) checkJournal() {
	if c.state == nil {
		c.noJournal()
		return
	}
	chain := c.state.Chain
	switch {
	case chain.Linked == 0 && chain.Lines > 1:
		c.unchecked("whether lines of %s were changed or left out: they do not name the lines before them", journal.File)
	case len(chain.Broken) > 0:
		c.find(Finding{Kind: Journal, File: journal.File, Message: "was edited: " + brokenText(chain.Broken)})
	}
	if len(c.state.Runs) == 0 {
		c.find(Finding{Kind: Journal, File: journal.File, Message: "does not say that the job was ever started: its beginning is missing"})
		return
	}
	last := c.lastRun()
	if c.finished() && (last.End == nil || last.End.Kind != journal.JobFinished) {
		c.find(Finding{
			Kind: Journal, File: journal.File,
			Message: "does not say that the job finished, though its result does: lines are missing at the end, or the run was killed as it ended" +
				" ('proctor job resume' completes such a job)",
		})
	}
	if started := last.Start; c.result != nil && started.Planned != c.result.NTotalTrials {
		c.find(Finding{
			Kind: Journal, File: journal.File,
			Message: fmt.Sprintf("says that %s, %s %d", planned(started.Planned), scan.ResultFile, c.result.NTotalTrials),
		})
	}
}

// noJournal tells of a job without one whether it should have one.
func (c *check) noJournal() {
	for _, f := range c.Findings {
		if f.Kind == Journal {
			return // it is there, and cannot be read
		}
	}
	for _, r := range c.records {
		if _, err := jobdir.ReadTrialFile(c.dir, slashed(r.Dir, jobdir.NotesFile)); err == nil {
			c.find(Finding{Kind: Journal, File: journal.File, Message: "is gone: a job of proctor has one"})
			return
		}
	}
	c.unchecked("whether results are those that were written: there is no %s (Harbor writes none)", journal.File)
}

func brokenText(lines []int) string {
	list := make([]string, min(len(lines), 10))
	for i := range list {
		list[i] = strconv.Itoa(lines[i])
	}
	text := "line " + list[0] + " does"
	if len(lines) > 1 {
		text = "lines " + strings.Join(list, ", ")
		if len(lines) > len(list) {
			text += ", …"
		}
		text += " do"
	}
	return text + " not follow on the line before as it was written"
}

func (c *check) lastRun() *journal.Run { return &c.state.Runs[len(c.state.Runs)-1] }

// inputs is what the last run wrote of what it was asked to do; nil where it is not known.
func (c *check) inputs() *journal.Entry {
	for i := len(c.state.Runs) - 1; i >= 0; i-- {
		if e := c.state.Runs[i].Inputs; e != nil {
			return e
		}
	}
	return nil
}

// checkInputs holds the files that say what the job was to do against the journal.
func (c *check) checkInputs() {
	if c.state == nil || len(c.state.Runs) == 0 {
		return
	}
	e := c.inputs()
	if e == nil {
		c.unchecked("%s, %s and %s: the journal does not say what was written", scan.ConfigFile, scan.LockFile, score.PolicyFile)
		return
	}
	for _, f := range []struct {
		kind Kind
		name string
		want *jobdir.FileDigest
	}{{Config, scan.ConfigFile, e.ConfigDigest}, {Lock, scan.LockFile, e.LockDigest}, {Policy, score.PolicyFile, e.PolicyDigest}} {
		digest, there := c.digests[f.name]
		switch {
		case !there && f.want != nil:
			c.find(Finding{Kind: f.kind, File: f.name, Message: "is gone, or cannot be read: the run wrote one"})
		case there && f.want == nil && f.kind == Policy:
			c.find(Finding{Kind: f.kind, File: f.name, Message: "was added after the job had begun"})
		case there && f.want != nil && digest != *f.want:
			c.find(Finding{Kind: f.kind, File: f.name, Message: "is not what the run wrote: it was changed since" + c.configChanges(f.kind)})
		}
	}
}

// configChanges names the fields of the configuration that were changed.
func (c *check) configChanges(kind Kind) string {
	if kind != Config || c.config == nil {
		return ""
	}
	for _, run := range slices.Backward(c.state.Runs) {
		if run.Start.Config == nil {
			continue
		}
		ran, err := parseConfig(run.Start.Config)
		if err != nil {
			return ""
		}
		var list []string
		for _, change := range ran.Changes(*c.config, nil) {
			list = append(list, change.String())
		}
		if len(list) > 0 {
			return " (" + strings.Join(list, "; ") + ")"
		}
		return ""
	}
	return ""
}

// checkResult holds the job's result against the journal.
func (c *check) checkResult() {
	stored, there := c.digests[scan.ResultFile]
	if c.state == nil || len(c.state.Runs) == 0 || !there {
		return
	}
	written := c.state.Written
	if written == nil {
		written = c.lastRun().End
	}
	if written == nil || written.ResultDigest == nil || *written.ResultDigest == stored {
		return
	}
	if written.Kind == journal.JobInterrupted && c.finished() {
		return // that the journal knows no end is found already
	}
	c.find(Finding{Kind: Result, File: scan.ResultFile, Message: "is not what was written when the job ended: it was changed since"})
}

// checkNames finds trials that are there twice, or under another name.
func (c *check) checkNames() {
	places := map[string][]string{}
	for _, r := range c.records {
		places[r.TrialName] = append(places[r.TrialName], r.Dir)
	}
	for _, r := range c.records {
		switch same := places[r.TrialName]; {
		case len(same) > 1 && same[0] == r.Dir:
			c.find(Finding{Kind: Trial, Trial: r.TrialName, Message: "is there more than once: in " + strings.Join(same, ", ")})
		case len(same) == 1 && r.Dir != r.TrialName:
			c.find(Finding{Kind: Trial, Trial: r.TrialName, File: slashed(r.Dir), Message: "is a directory of another name"})
		}
	}
}

// checkPlan holds the trials against what was planned.
func (c *check) checkPlan() {
	c.checkJournaled()
	if c.result != nil && c.finished() && c.result.NTotalTrials != len(c.records) {
		c.find(Finding{
			Kind: Trial, File: scan.ResultFile,
			Message: fmt.Sprintf("says that %s, and %s a result", planned(c.result.NTotalTrials), console.CountHave(len(c.records), "trial")),
		})
	}
	if c.lock == nil {
		if c.state == nil || len(c.state.Runs) == 0 {
			c.unchecked("whether the trials are the planned ones: there is no %s", scan.LockFile)
		}
		return
	}
	c.checkLocked()
}

// checkLocked finds the trials that the lock does not plan, and those that it plans and
// that are not there.
func (c *check) checkLocked() {
	type planned struct {
		entry *jobdir.TrialLock
		left  int
	}
	plan := map[[32]byte]*planned{}
	var order [][32]byte
	for i := range c.lock.Trials {
		key := c.lock.Trials[i].PlanKey()
		if plan[key] == nil {
			plan[key] = &planned{entry: &c.lock.Trials[i]}
			order = append(order, key)
		}
		plan[key].left++
	}
	for i := range c.trials {
		t := &c.trials[i]
		if t.result == nil {
			continue
		}
		switch p := plan[jobdir.PlannedAs(t.result.Config).PlanKey()]; {
		case p == nil:
			c.find(Finding{Kind: Lock, Trial: t.name, Message: fmt.Sprintf("ran what %s does not plan: %s", scan.LockFile, ranText(t.result))})
		case p.left == 0:
			c.find(Finding{Kind: Lock, Trial: t.name, Message: fmt.Sprintf("is one more than %s plans: %s", scan.LockFile, ranText(t.result))})
		default:
			p.left--
		}
	}
	if !c.finished() {
		return
	}
	for _, key := range order {
		if p := plan[key]; p.left > 0 {
			c.find(Finding{
				Kind: Lock, File: scan.LockFile,
				Message: fmt.Sprintf("plans %s of task %s with agent %s more than there are results", console.Count(p.left, "trial"),
					strconv.Quote(p.entry.Task.Name), strconv.Quote(agentText(p.entry.Agent))),
			})
		}
	}
}

func ranText(r *jobdir.TrialResult) string {
	return fmt.Sprintf("task %s, agent %s", strconv.Quote(r.TaskName), strconv.Quote(agentText(r.Config.Agent)))
}

func agentText(a jobdir.AgentConfig) string {
	text := ""
	switch {
	case a.Name != nil:
		text = *a.Name
	case a.ImportPath != nil:
		text = *a.ImportPath
	}
	if a.ModelName != nil {
		text += " with " + *a.ModelName
	}
	return text
}

// checkJournaled holds the trials against those that the journal says to have ended.
func (c *check) checkJournaled() {
	if c.state == nil || len(c.state.Runs) == 0 {
		return
	}
	found := map[string]bool{}
	for _, r := range c.records {
		found[r.Dir] = true
		c.checkKnown(r.Dir)
	}
	for name := range c.state.Results() {
		if !found[name] {
			c.find(Finding{Kind: Trial, Trial: name, Message: "is gone, or has no result any more: the journal says that it ended"})
		}
	}
}

// checkKnown finds a trial that no run made.
func (c *check) checkKnown(name string) {
	t := c.state.ByName[name]
	switch {
	case t == nil:
		c.find(Finding{Kind: Trial, Trial: name, Message: "was added: the journal knows no such trial"})
	case t.Found() && c.state.Runs[0].Start.Kind == journal.JobStarted:
		c.find(Finding{Kind: Trial, Trial: name, Message: "was found by a run, and no run made it"})
	case !t.Ended() && c.finished():
		c.find(Finding{Kind: Trial, Trial: name, Message: "has a result, though the journal does not say that it ended"})
	}
}

func planned(trials int) string {
	if trials == 1 {
		return "1 trial was planned"
	}
	return console.Count(trials, "trial") + " were planned"
}
