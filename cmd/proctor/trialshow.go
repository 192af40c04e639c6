package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/spf13/cobra"
)

func newTrialShow(env *Env) *cobra.Command {
	var asJSON bool
	lines := 10
	cmd := &cobra.Command{
		Use:   "show TRIALDIR",
		Short: "Show what became of a trial: the cause of its error, its phases, its logs",
		Long: `show says how a trial ended, the cause of an error first, then when each phase
began and how long it took, and the last lines of its logs. It also works for a
trial that runs or was killed.`,
		Example: `  proctor trial show jobs/2026-06-09__10-00-00/hello-world__AbCdEfG
  proctor trial show --lines 50 jobs/2026-06-09__10-00-00/hello-world__AbCdEfG`,
		Args: oneDirectory("trial"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := readTrialSummary(args[0], max(lines, 0))
			if err != nil {
				return err
			}
			if asJSON {
				return encodeJSON(env.Stdout, s)
			}
			printTrialSummary(env.Stdout, s)
			return nil
		},
	}
	cmd.Flags().IntVar(&lines, "lines", lines, "show this `number` of lines at the end of each log")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, nothing else")
	return cmd
}

// Kinds of phases, in the order in which they come.
const (
	phaseEnvironment = "environment"
	phaseAgentSetup  = "agent setup"
	phaseAgent       = "agent"
	phaseVerifier    = "verifier"
)

var phaseKinds = []string{phaseEnvironment, phaseAgentSetup, phaseAgent, phaseVerifier}

// trialPhase is one phase of a trial that has ended.
type trialPhase struct {
	Kind string `json:"kind"`
	// Name is the kind, with the step that it belongs to.
	Name string `json:"name"`
	// Offset is when it began, in seconds after the trial.
	Offset  float64 `json:"offset_seconds"`
	Seconds float64 `json:"seconds"`
}

// classOf is the outcome of a trial.
func classOf(r *jobdir.TrialResult) string {
	rec := jobdir.RecordOf(r)
	return string(rec.Class())
}

// phasesOf lists the phases of a trial, those of its steps among them.
func phasesOf(r *jobdir.TrialResult) []trialPhase {
	var list []trialPhase
	add := func(kind, step string, t *jobdir.Timing) {
		if t == nil || t.StartedAt == nil || t.FinishedAt == nil {
			return
		}
		start := t.StartedAt.In(time.UTC)
		p := trialPhase{Kind: kind, Name: kind, Seconds: t.FinishedAt.In(time.UTC).Sub(start).Seconds()}
		if step != "" {
			p.Name += " (step " + step + ")"
		}
		if r.StartedAt != nil {
			p.Offset = start.Sub(r.StartedAt.In(time.UTC)).Seconds()
		}
		list = append(list, p)
	}
	add(phaseEnvironment, "", r.EnvironmentSetup)
	add(phaseAgentSetup, "", r.AgentSetup)
	for _, s := range r.StepResults {
		add(phaseAgent, s.StepName, s.AgentExecution)
		add(phaseVerifier, s.StepName, s.Verifier)
	}
	if len(r.StepResults) == 0 {
		add(phaseAgent, "", r.AgentExecution)
		add(phaseVerifier, "", r.Verifier)
	}
	return list
}

// trialSummary is what trial show --json prints.
type trialSummary struct {
	Dir     string              `json:"dir"`
	State   string              `json:"state"`
	Trial   string              `json:"trial,omitempty"`
	Task    string              `json:"task,omitempty"`
	Agent   string              `json:"agent,omitempty"`
	Outcome string              `json:"outcome"`
	Result  *jsonResult         `json:"result"`
	Cause   *jsonCause          `json:"cause"`
	Steps   []stepSummary       `json:"steps"`
	Phases  []trialPhase        `json:"phases"`
	Notes   *jobdir.Notes       `json:"notes"`
	Earlier []string            `json:"earlier_attempts"`
	Logs    []logTail           `json:"logs"`
	result  *jobdir.TrialResult // nil without one
}

type jsonCause struct {
	jsonException
	// Phase is where it happened, as far as it is known.
	Phase string `json:"phase,omitempty"`
	// Traceback is the text that the result holds.
	Traceback string `json:"traceback,omitempty"`
}

type stepSummary struct {
	Name      string          `json:"name"`
	Rewards   json.RawMessage `json:"rewards"`
	Exception *jsonException  `json:"exception"`
}

// logTail is the end of a log file.
type logTail struct {
	File  string   `json:"file"`
	Lines []string `json:"lines"`
	Cut   bool     `json:"cut"` // there is more before it
}

func readTrialSummary(dir string, lines int) (*trialSummary, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, withHint(usageErrorf("%q is not a trial directory: %w", dir, err), "'proctor job show' names the trials of a job")
	}
	defer func() { _ = root.Close() }()
	s := &trialSummary{Dir: dir, State: stateUnfinished, Outcome: classUnfinished, Steps: []stepSummary{}, Phases: []trialPhase{}}
	if err := s.readResult(root); err != nil {
		return nil, err
	}
	s.readNotes()
	s.findCause()
	s.Earlier = earlierAttempts(root)
	s.Logs = tails(root, lines)
	return s, nil
}

func (s *trialSummary) readResult(root *os.Root) error {
	data, err := root.ReadFile(scan.ResultFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s.readStarted(root)
	}
	if err != nil {
		return fmt.Errorf("reading the trial: %w", err)
	}
	r, err := jobdir.ParseTrialResult(data)
	if err != nil {
		return withHint(usageErrorf("%s: %w", filepath.Join(s.Dir, scan.ResultFile), err),
			"if this is a job directory use 'proctor job show'; if the file was cut short, 'proctor job resume' runs the trial again")
	}
	s.result, s.State, s.Outcome = &r, stateFinished, classOf(&r)
	s.Trial, s.Task, s.Agent = r.TrialName, r.TaskName, r.AgentInfo.Name
	if m := r.AgentInfo.ModelInfo; m != nil {
		s.Agent += " (" + m.Name + ")"
	}
	s.Result, s.Phases = newJSONResult(&r), append(s.Phases, phasesOf(&r)...)
	for _, step := range r.StepResults {
		x := jobdir.TrialResult{VerifierResult: step.VerifierResult}
		sum := stepSummary{Name: step.StepName, Rewards: rewardsJSON(&x)}
		if e := step.ExceptionInfo; e != nil {
			sum.Exception = &jsonException{Type: e.Type, Message: e.Message}
		}
		s.Steps = append(s.Steps, sum)
	}
	return nil
}

// readStarted reads what a trial that has not ended left at its start.
func (s *trialSummary) readStarted(root *os.Root) error {
	var c jobdir.TrialConfig
	data, err := root.ReadFile(scan.ConfigFile)
	if err == nil {
		c, _, err = jobdir.ParseTrialConfig(data)
	}
	if err == nil {
		s.Trial = c.TrialName
		if c.Task.Path != nil {
			s.Task = filepath.Base(*c.Task.Path)
		}
		if c.Agent.Name != nil {
			s.Agent = *c.Agent.Name
		}
		return nil
	}
	return withHint(usageErrorf("%q is not a trial directory: it holds neither a readable %s nor the %s of a trial", s.Dir, scan.ResultFile, scan.ConfigFile),
		"'proctor job show' names the trials of a job")
}

func (s *trialSummary) readNotes() {
	// A trial of Harbor has none.
	if n, err := jobdir.ReadNotes(s.Dir); err == nil {
		s.Notes = &n
	}
}

// findCause finds the error that ended the trial, or its first step with one.
func (s *trialSummary) findCause() {
	if s.result == nil {
		return
	}
	info := s.result.ExceptionInfo
	where := ""
	for _, step := range s.result.StepResults {
		if info == nil && step.ExceptionInfo != nil {
			info, where = step.ExceptionInfo, "step "+step.StepName
		}
	}
	if info == nil {
		return
	}
	s.Cause = &jsonCause{jsonException: jsonException{Type: info.Type, Message: info.Message}, Phase: where, Traceback: info.Traceback}
	if s.Notes == nil {
		return
	}
	for _, e := range s.Notes.Errors {
		if e.Type == info.Type && e.Message == info.Message {
			s.Cause.Phase = e.Phase
			return
		}
	}
}

func earlierAttempts(root *os.Root) []string {
	names := []string{}
	entries, _ := fs.ReadDir(root.FS(), "attempts")
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, "attempts/"+e.Name())
		}
	}
	return names
}

// Limits of what is shown of a trial's logs.
const (
	maxTailBytes = 64 << 10
	maxTailFiles = 20
)

// tails reads the ends of the logs: the trial's own first, then those of agent
// and verifier, of every step. What the agent left may be anything.
func tails(root *os.Root, lines int) []logTail {
	logs := []logTail{}
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir
		case d.IsDir() && path != "." && !mayHoldLogs(path):
			return fs.SkipDir
		case !d.Type().IsRegular() || !isLog(path):
			return nil
		case len(logs) >= maxTailFiles:
			return fs.SkipAll
		}
		if t, ok := tailOf(root, path, lines); ok {
			logs = append(logs, t)
		}
		return nil
	})
	return logs
}

func mayHoldLogs(path string) bool {
	parts := strings.Split(path, "/")
	if parts[0] == "steps" {
		parts = parts[min(2, len(parts)):]
	}
	return len(parts) == 0 || len(parts) == 1 && (parts[0] == "agent" || parts[0] == "verifier")
}

func isLog(path string) bool {
	switch filepath.Ext(path) {
	case ".log", ".txt":
	default:
		return false
	}
	name := filepath.Base(path)
	return name != "reward.txt" && name != "exception.txt"
}

func tailOf(root *os.Root, path string, lines int) (logTail, bool) {
	f, err := root.Open(path)
	if err != nil {
		return logTail{}, false
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || lines == 0 {
		return logTail{}, false
	}
	from := max(info.Size()-maxTailBytes, 0)
	data, err := io.ReadAll(io.NewSectionReader(f, from, maxTailBytes))
	if err != nil {
		return logTail{}, false
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	kept := all[max(len(all)-lines, 0):]
	return logTail{File: path, Lines: kept, Cut: from > 0 || len(kept) < len(all)}, true
}
