package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
)

// trialFiles is what was read of a trial's directory.
type trialFiles struct {
	name   string // of the directory
	result *jobdir.TrialResult
	notes  *jobdir.Notes // nil for a trial of Harbor

	findings []Finding
	// noFiles: there is nothing that its rewards could be held against.
	noFiles bool
}

func (t *trialFiles) find(f Finding) {
	f.Trial = t.name
	t.findings = append(t.findings, f)
}

// checkTrials looks at each trial by itself, several at a time.
func (c *check) checkTrials(ctx context.Context) error {
	c.trials = make([]trialFiles, len(c.records))
	next := make(chan int)
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(c.records)) {
		all.Go(func() {
			for i := range next {
				c.trials[i] = c.checkTrial(c.records[i].Dir)
			}
		})
	}
	for i := range c.records {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	all.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("checking %q: %w", c.dir, context.Cause(ctx))
	}
	without := 0
	for i := range c.trials {
		t := &c.trials[i]
		c.Findings = append(c.Findings, t.findings...)
		if t.noFiles {
			without++
		}
	}
	if without > 0 {
		c.unchecked("the rewards of %s: there are no files of a verifier", console.Count(without, "trial"))
	}
	return nil
}

// checkTrial does not touch what others use at the same time.
func (c *check) checkTrial(name string) trialFiles {
	t := trialFiles{name: name}
	data, err := jobdir.ReadTrialFile(c.dir, slashed(name, scan.ResultFile))
	if err == nil {
		var r jobdir.TrialResult
		if r, err = jobdir.ParseTrialResult(data); err == nil {
			t.result = &r
		}
	}
	if err != nil {
		t.find(Finding{Kind: Result, File: slashed(name, scan.ResultFile), Message: unreadable(err)})
		return t
	}
	c.readNotes(&t)
	c.checkWritten(&t, data)
	t.checkTimes()
	c.checkTrialConfig(&t)
	c.checkRewards(&t)
	for _, text := range t.suspicions() {
		t.find(Finding{Kind: Suspicion, Message: text})
	}
	return t
}

func (t *trialFiles) suspicions() []string {
	if t.notes == nil {
		return nil
	}
	return t.notes.Suspicions()
}

// finish is what the journal says of the trial's end; nil where it says nothing.
func (c *check) finish(name string) *journal.Entry {
	if c.state == nil {
		return nil
	}
	return c.state.Finish(name)
}

// readNotes reads proctor.json, and holds it against the journal.
func (c *check) readNotes(t *trialFiles) {
	file := slashed(t.name, jobdir.NotesFile)
	noted := c.finish(t.name)
	data, err := jobdir.ReadTrialFile(c.dir, file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && (noted == nil || noted.NotesDigest == nil):
		return
	case errors.Is(err, fs.ErrNotExist):
		t.find(Finding{Kind: Notes, File: file, Message: "is gone"})
		return
	case err != nil:
		t.find(Finding{Kind: Notes, File: file, Message: unreadable(err)})
		return
	}
	notes, err := jobdir.ParseNotes(data)
	if err != nil {
		t.find(Finding{Kind: Notes, File: file, Message: unreadable(err)})
	} else {
		t.notes = &notes
	}
	if noted != nil && noted.NotesDigest != nil && jobdir.DigestOf(data) != *noted.NotesDigest {
		t.find(Finding{Kind: Notes, File: file, Message: "is not what was written when the trial ended: it was changed since"})
	}
}

// checkWritten holds a trial's result against the journal.
func (c *check) checkWritten(t *trialFiles, data []byte) {
	noted := c.finish(t.name)
	if noted == nil || noted.ResultDigest == nil || jobdir.DigestOf(data) == *noted.ResultDigest {
		return
	}
	message := "is not what was written when the trial ended: it was changed since"
	if seen := c.changed(t, noted); len(seen) > 0 {
		message += " (" + strings.Join(seen, "; ") + ")"
	}
	t.find(Finding{Kind: Result, File: slashed(t.name, scan.ResultFile), Message: message})
}

// changed says what in a changed result is not as the journal has it.
func (c *check) changed(t *trialFiles, noted *journal.Entry) []string {
	rec := jobdir.RecordOf(t.result)
	var list []string
	add := func(differs bool, format string, args ...any) {
		if differs {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(rec.ExceptionType != noted.Exception, "exception %q, was %q", rec.ExceptionType, noted.Exception)
	add((rec.Rewards != nil) != noted.Rewarded, "there were rewards: %v, there are: %v", noted.Rewarded, rec.Rewards != nil)
	was, is := *noted, journal.Entry{}
	is.Spent(rec.Usage)
	add(was.InputTokens != is.InputTokens || was.OutputTokens != is.OutputTokens, "tokens %s in, %s out, were %s and %s",
		cmp.Or(is.InputTokens, "none"), cmp.Or(is.OutputTokens, "none"), cmp.Or(was.InputTokens, "none"), cmp.Or(was.OutputTokens, "none"))
	if known := c.state.ByName[t.name]; known != nil {
		add(path.Base(t.result.TaskName) != path.Base(known.Task), "task %q, was %q", t.result.TaskName, known.Task)
		a := known.Attempts[len(known.Attempts)-1]
		add(!a.Started.IsZero() && !within(t.result, a.Started, noted.Time), "its times lie outside of the time in which it ran")
	}
	return list
}

// slack is what a clock may have been set by while a trial ran.
const slack = time.Second

func within(r *jobdir.TrialResult, from, to time.Time) bool {
	for _, at := range []*jobdir.Time{r.StartedAt, r.FinishedAt} {
		if at == nil {
			return false
		}
		if t := at.In(time.UTC); t.Before(from.Add(-slack)) || t.After(to.Add(slack)) {
			return false
		}
	}
	return true
}

// checkTimes finds times that cannot be.
func (t *trialFiles) checkTimes() {
	r := t.result
	file := slashed(t.name, scan.ResultFile)
	if r.StartedAt == nil || r.FinishedAt == nil {
		return
	}
	start, end := r.StartedAt.In(time.UTC), r.FinishedAt.In(time.UTC)
	if end.Before(start) {
		t.find(Finding{Kind: Time, File: file, Message: fmt.Sprintf("says that the trial finished (%s) before it started (%s)", r.FinishedAt, r.StartedAt)})
		return
	}
	phases := map[string]*jobdir.Timing{
		"environment_setup": r.EnvironmentSetup, "agent_setup": r.AgentSetup, "agent_execution": r.AgentExecution, "verifier": r.Verifier,
	}
	for _, s := range r.StepResults {
		phases[fmt.Sprintf("agent_execution of step %q", s.StepName)] = s.AgentExecution
		phases[fmt.Sprintf("verifier of step %q", s.StepName)] = s.Verifier
	}
	for name, p := range phases {
		if p == nil || p.StartedAt == nil || p.FinishedAt == nil {
			continue
		}
		from, to := p.StartedAt.In(time.UTC), p.FinishedAt.In(time.UTC)
		if from.Before(start.Add(-slack)) || to.After(end.Add(slack)) || to.Before(from.Add(-slack)) {
			t.find(Finding{Kind: Time, File: file, Message: fmt.Sprintf("has %s from %s to %s, which is not within the trial", name, p.StartedAt, p.FinishedAt)})
		}
	}
}

// checkTrialConfig holds the configuration that the trial began with against the one in
// its result.
func (c *check) checkTrialConfig(t *trialFiles) {
	file := slashed(t.name, scan.ConfigFile)
	data, err := jobdir.ReadTrialFile(c.dir, file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var cfg jobdir.TrialConfig
	if err == nil {
		cfg, _, err = jobdir.ParseTrialConfig(data)
	}
	if err != nil {
		t.find(Finding{Kind: Config, File: file, Message: unreadable(err)})
		return
	}
	own, ran := cfg, t.result.Config
	own.TrialsDir, ran.TrialsDir = "", "" // jobs are moved
	if own.Identity(nil) != ran.Identity(nil) {
		t.find(Finding{Kind: Config, File: file, Message: "is not the configuration that its " + scan.ResultFile + " has"})
	}
	if c.config != nil && !c.asks(ran.Agent) {
		t.find(Finding{Kind: Config, Message: fmt.Sprintf("ran with agent %q, which the job's %s does not have", agentText(ran.Agent), scan.ConfigFile)})
	}
}

// asks reports whether the job's configuration has an agent; one that has none has the
// default's.
func (c *check) asks(a jobdir.AgentConfig) bool {
	if len(c.config.Agents) == 0 {
		return true
	}
	for _, asked := range c.config.Agents {
		if agentText(asked) == agentText(a) {
			return true
		}
	}
	return false
}

// isName reports whether a step's name is one path element.
func isName(s string) bool {
	return filepath.IsLocal(s) && s != "." && !strings.ContainsAny(s, `/\`)
}
