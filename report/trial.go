package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/value"
)

// Trial is what a trial's directory shows of it, while it runs and after: what
// proctor trial show --json prints.
type Trial struct {
	Dir   string `json:"dir"`
	State State  `json:"state"`
	Trial string `json:"trial,omitempty"`
	Task  string `json:"task,omitempty"`
	Agent string `json:"agent,omitempty"` // with the model in brackets, where one is known
	// Outcome is the class of the result, [ClassUnfinished] without one.
	Outcome jobdir.Class  `json:"outcome"`
	Result  *Result       `json:"result"` // null without one
	Cause   *Cause        `json:"cause"`  // null without an exception
	Steps   []StepResult  `json:"steps"`
	Phases  []Phase       `json:"phases"` // those that have ended
	Notes   *jobdir.Notes `json:"notes"`  // null without any, as in trials of Harbor
	// Earlier are the directories of attempts that were set aside.
	Earlier []string  `json:"earlier_attempts"`
	Logs    []LogTail `json:"logs"`
	// Document is the whole result; nil without one.
	Document *jobdir.TrialResult `json:"-"`
}

// Result is the result of a trial in short.
type Result struct {
	// Rewards is the object of the trial's result file, null without rewards.
	Rewards   json.RawMessage `json:"rewards"`
	Exception *Exception      `json:"exception"`
	Seconds   float64         `json:"seconds"` // 0 while it is not known
	// ReasonCode is that of the exception, or else of StepException; null without either.
	ReasonCode *outcome.Code `json:"reason_code"`
	// StepException is that of the first step with one, of a trial that has none itself.
	StepException *StepException `json:"step_exception,omitempty"`
}

// Exception is the error that ended a trial or a step.
type Exception struct {
	Type       string       `json:"type"` // the name under which Harbor records it
	Message    string       `json:"message"`
	ReasonCode outcome.Code `json:"reason_code"` // that the type stands for
}

// StepException is the error that ended a step.
type StepException struct {
	Step string `json:"step"`
	Exception
}

// Cause is the exception that ended a trial, or that of its first step with one.
type Cause struct {
	Exception
	// Phase is where it happened, as far as it is known.
	Phase string `json:"phase,omitempty"`
	// Traceback is the text that the result holds.
	Traceback string `json:"traceback,omitempty"`
}

// StepResult is the result of one step of a task with several.
type StepResult struct {
	Name      string          `json:"name"`
	Rewards   json.RawMessage `json:"rewards"`
	Exception *Exception      `json:"exception"`
}

var errNoTrial = errors.New("it holds neither a readable " + scan.ResultFile + " nor the " + scan.ConfigFile + " of a trial")

// NewResult sums a result up.
func NewResult(r *jobdir.TrialResult) *Result {
	out := &Result{Rewards: rewardsJSON(r.VerifierResult), Exception: newException(r.ExceptionInfo)}
	if r.StartedAt != nil && r.FinishedAt != nil {
		out.Seconds = r.FinishedAt.In(time.UTC).Sub(r.StartedAt.In(time.UTC)).Seconds()
	}
	info, step := r.Failure()
	if x := newException(info); x != nil {
		out.ReasonCode = &x.ReasonCode
		if r.ExceptionInfo == nil {
			out.StepException = &StepException{step, *x}
		}
	}
	return out
}

func newException(x *jobdir.ExceptionInfo) *Exception {
	if x == nil {
		return nil
	}
	return &Exception{Type: x.Type, Message: x.Message, ReasonCode: outcome.ReasonOfException(x.Type)}
}

func rewardsJSON(r *jobdir.VerifierResult) json.RawMessage {
	if r == nil || r.Rewards == nil {
		return json.RawMessage("null")
	}
	return value.AppendPydantic(nil, r.Rewards.Object(), 0)
}

// ReadTrial reads a trial's directory, whether the trial has ended or not, and up
// to lines lines at the end of each of its logs.
//
// The error is a [*NotFoundError] for a directory that is no trial's, and an
// [*InvalidError] for a result that cannot be read.
func ReadTrial(dir string, lines int) (*Trial, error) {
	root, err := bounded.OpenDir(dir)
	if err != nil {
		return nil, &NotFoundError{Path: dir, Kind: "trial", Err: err}
	}
	defer func() { _ = root.Close() }()
	t := &Trial{Dir: dir, State: Unfinished, Outcome: ClassUnfinished, Steps: []StepResult{}, Phases: []Phase{}}
	if err := t.readResult(root); err != nil {
		return nil, err
	}
	t.readNotes()
	t.findCause()
	t.Earlier = earlierAttempts(root)
	t.Logs = tails(root, lines)
	return t, nil
}

func (t *Trial) readResult(root *os.Root) error {
	data, err := bounded.ReadAt(root, scan.ResultFile, jobdir.MaxTrialFile)
	if errors.Is(err, fs.ErrNotExist) {
		return t.readStarted(root)
	}
	if err != nil {
		return fmt.Errorf("reading the trial: %w", err)
	}
	r, err := jobdir.ParseTrialResult(data)
	if err != nil {
		return &InvalidError{fmt.Errorf("%s: %w", filepath.Join(t.Dir, scan.ResultFile), err)}
	}
	began := int64(0)
	if r.StartedAt != nil {
		began = r.StartedAt.In(time.UTC).UnixMicro()
	}
	record := jobdir.RecordOf(&r)
	t.Document, t.State, t.Outcome = &r, Finished, record.Class()
	t.Trial, t.Task, t.Agent = r.TrialName, r.TaskName, r.AgentInfo.Name
	if m := r.AgentInfo.ModelInfo; m != nil {
		t.Agent += " (" + m.Name + ")"
	}
	t.Result, t.Phases = NewResult(&r), append(t.Phases, phasesOf(scan.PhasesOf(&r), began)...)
	for _, step := range r.StepResults {
		t.Steps = append(t.Steps, StepResult{Name: step.StepName, Rewards: rewardsJSON(step.VerifierResult), Exception: newException(step.ExceptionInfo)})
	}
	return nil
}

// readStarted reads what a trial that has not ended left at its start.
func (t *Trial) readStarted(root *os.Root) error {
	var c jobdir.TrialConfig
	data, err := bounded.ReadAt(root, scan.ConfigFile, jobdir.MaxTrialFile)
	if err == nil {
		c, _, err = jobdir.ParseTrialConfig(data)
	}
	if err == nil {
		t.Trial = c.TrialName
		if c.Task.Path != nil {
			t.Task = filepath.Base(*c.Task.Path)
		}
		if c.Agent.Name != nil {
			t.Agent = *c.Agent.Name
		}
		if j := ReadJournal(filepath.Dir(filepath.Clean(t.Dir))); j != nil && j.InUse(c.TrialName) {
			t.State = Running
		}
		return nil
	}
	return &NotFoundError{Path: t.Dir, Kind: "trial", Err: errNoTrial}
}

func (t *Trial) readNotes() {
	// A trial of Harbor has none.
	if n, err := jobdir.ReadNotes(t.Dir); err == nil {
		t.Notes = &n
	}
}

// findCause finds the error that ended the trial, or its first step with one.
func (t *Trial) findCause() {
	if t.Document == nil {
		return
	}
	info, where := t.Document.Failure()
	if info == nil {
		return
	}
	if where != "" {
		where = "step " + where
	}
	t.Cause = &Cause{Exception: *newException(info), Phase: where, Traceback: info.Traceback}
	if t.Notes == nil {
		return
	}
	for _, e := range t.Notes.Errors {
		if e.Type == info.Type && e.Message == info.Message {
			t.Cause.Phase = e.Phase
			return
		}
	}
}

func earlierAttempts(root *os.Root) []string {
	names := []string{}
	if info, err := root.Lstat("attempts"); err != nil || !info.IsDir() {
		return names
	}
	entries, _ := fs.ReadDir(root.FS(), "attempts")
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, "attempts/"+e.Name())
		}
	}
	return names
}
