package evaluation

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/ownrunner"
)

// maxRecord bounds a record that is read, and maxLog each log that is copied, in bytes.
const (
	maxRecord = 256 << 20
	maxLog    = 32 << 20
)

// readRecords reads the records of planned trials. One that cannot be read counts as
// none: its trial runs again, or its record is made again.
func (e *Evaluation) readRecords() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.records = map[string]ownrunner.Trial{}
	root, err := bounded.OpenDir(e.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the job directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, p := range e.Plan() {
		data, err := bounded.ReadAt(root, filepath.Join(trialsDir, p.TrialName, recordFile), maxRecord)
		if err != nil {
			continue
		}
		if t, err := ownrunner.ParseTrial(data); err == nil && t.TrialName == p.TrialName {
			e.records[p.TrialName] = t
		}
	}
	return nil
}

// Recorded reports whether a trial has a record.
func (e *Evaluation) Recorded(trial string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.records[trial]
	return ok
}

// Ended is what became of a trial, for its record and for whoever follows its logs.
type Ended struct {
	Trial ownrunner.Trial
	// Agent, Log and TestOutput are its logs, Error the text of its error.
	Agent, Log, TestOutput, Error string
}

// Harness is what the runner has to say of the trial.
func (r *Ended) Harness() string { return r.Log + r.Error }

// Record writes the record of a trial that has ended, of what the job's directory has of
// it. A trial that was cancelled has none, for it runs again.
func (e *Evaluation) Record(res *jobdir.TrialResult) (*Ended, error) {
	task, ok := e.planned[res.TrialName]
	if !ok {
		return nil, fmt.Errorf("recording trial %q: it is none of the plan", res.TrialName)
	}
	failure := failureOf(res)
	if failure != nil && failure.Reason() == outcome.CancelledError {
		return nil, nil
	}
	r := e.read(res, task, failure)
	if err := e.write(r); err != nil {
		return nil, fmt.Errorf("recording trial %q: %w", res.TrialName, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.records[res.TrialName] = r.Trial
	return r, nil
}

// failureOf is the exception of a trial, or the first of its steps; nil for none.
func failureOf(res *jobdir.TrialResult) *ownrunner.Failure {
	info, _ := res.Failure()
	if info == nil {
		return nil
	}
	return &ownrunner.Failure{Type: info.Type, Message: info.Message, Unstarted: res.AgentSetup == nil}
}

// read makes the record of a trial. Where the agent or anything else failed, the trial
// has no rewards, also where there is a verifier's verdict (section 8.3).
func (e *Evaluation) read(res *jobdir.TrialResult, task Task, failure *ownrunner.Failure) *Ended {
	r := &Ended{Trial: ownrunner.Trial{
		TaskName: task.Name, TrialName: res.TrialName, Status: outcome.Completed,
		AgentName: e.Lock.AgentName, ModelName: e.Lock.ModelName,
	}}
	dir := filepath.Join(e.JobDir(), res.TrialName)
	if notes, err := jobdir.ReadNotes(dir); err == nil && notes.Verification != nil {
		r.Trial.VerifierExit = &notes.Verification.ExitCode
	}
	switch {
	case failure != nil:
		e.fail(r, failure.Reason(), failure.Text())
	case res.VerifierResult == nil || res.VerifierResult.Rewards == nil:
		e.fail(r, outcome.RewardMissing, "verifier failed: "+string(outcome.RewardMissing))
	default:
		r.Trial.Rewards = res.VerifierResult.Rewards
		if _, err := r.Trial.Score(); err != nil {
			e.fail(r, outcome.TrialFailed, "trial crashed: "+err.Error())
		}
	}
	for _, stage := range stages(dir) {
		if e.Output != "" {
			r.Agent += e.log(dir, filepath.Join(stage, "agent", e.Output))
		}
		r.TestOutput += e.log(dir, filepath.Join(stage, "verifier", "test-stdout.txt"))
	}
	return r
}

func (e *Evaluation) fail(r *Ended, reason outcome.Code, text string) {
	r.Trial.Status, r.Trial.Errored, r.Trial.Rewards, r.Trial.Reason = outcome.Failed, true, nil, reason
	r.Error = e.clean(text)
}

func (e *Evaluation) clean(text string) string {
	if e.Clean == nil {
		return text
	}
	return e.Clean(text)
}

// stages are the directories of a trial that have logs: its own and those of its steps.
func stages(dir string) []string {
	list := []string{"."}
	root, err := bounded.OpenDir(dir)
	if err != nil {
		return list
	}
	defer func() { _ = root.Close() }()
	steps, err := fs.ReadDir(root.FS(), "steps")
	if err != nil {
		return list
	}
	for _, s := range steps {
		list = append(list, filepath.Join("steps", s.Name()))
	}
	return list
}

// log is the text of a log; what is no file or is not there is empty.
func (e *Evaluation) log(dir, name string) string {
	data, err := bounded.ReadIn(dir, name, maxLog)
	if err != nil {
		return ""
	}
	return e.clean(strings.ToValidUTF8(string(data), "\uFFFD"))
}

// write writes the files of a record; result.json, which makes it one, is the last.
func (e *Evaluation) write(r *Ended) error {
	result, err := r.Trial.ResultJSON()
	if err != nil {
		return err
	}
	log, err := r.Trial.Log()
	if err != nil {
		return err
	}
	r.Log = string(log)
	dir := filepath.Join(e.Dir, trialsDir, r.Trial.TrialName)
	for _, f := range []struct{ name, text string }{
		{"trial.log", r.Log},
		{filepath.Join("agent", "agent.log"), r.Agent},
		{filepath.Join("verifier", "test-stdout.txt"), r.TestOutput},
		{"exception.txt", r.Error},
	} {
		if err := writeLog(filepath.Join(dir, f.name), f.text); err != nil {
			return err
		}
	}
	return atomicfile.Write(filepath.Join(dir, recordFile), result, 0o644)
}

// writeLog writes a log. One without text has no file, nor what an earlier record left in
// its place.
func writeLog(path, text string) error {
	if text == "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteUnsynced(path, []byte(text), 0o644)
}

// errorText is the error text of a trial that has a record.
func (e *Evaluation) errorText(trial string) *string {
	data, err := bounded.ReadIn(filepath.Join(e.Dir, trialsDir, trial), "exception.txt", maxLog)
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	return new(e.clean(strings.ToValidUTF8(string(data), "\uFFFD")))
}
