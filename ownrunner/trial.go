package ownrunner

import (
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// Trial is one finished trial.
type Trial struct {
	TaskName, TrialName string
	Status              outcome.Status // Completed or Failed
	Errored             bool
	Rewards             *reward.Rewards // nil for none
	Reason              outcome.Code
	AgentName           string
	ModelName, Source   *string // nil is null
	VerifierExit        *int    // exit status of the verifier's script; nil if it did not run
}

// Planned is a trial that is to be run. Attempts count from 0.
type Planned struct {
	Task      string
	Attempt   int
	TrialName string
}

// PlanTrials returns the trials of a job in order: attempt outermost, then task.
// Results keep this order.
func PlanTrials(tasks []string, attempts int) []Planned {
	var plan []Planned
	for attempt := range max(attempts, 0) {
		for _, task := range tasks {
			plan = append(plan, Planned{task, attempt, TrialName(task, attempt)})
		}
	}
	return plan
}

// TrialName is the name of a trial and of its directory. Names of different
// tasks can collide.
func TrialName(task string, attempt int) string {
	var b strings.Builder
	replaced := false
	for _, r := range task {
		if isNameChar(r) {
			b.WriteRune(r)
		} else if !replaced {
			b.WriteByte('_')
		}
		replaced = !isNameChar(r)
	}
	return b.String() + "__attempt-" + strconv.Itoa(attempt)
}

func isNameChar(r rune) bool { return isAlnum(r) || r == '.' || r == '_' || r == '-' }

// isAlnum tells ASCII letters and digits.
func isAlnum(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// Score is the trial's score: what the job's score would be if it were the only
// trial. The error is that of a reward beyond the range of doubles.
func (t Trial) Score() (float64, error) {
	if t.Rewards == nil {
		return 0, nil
	}
	metric, err := reward.Aggregate(reward.Mean, []*reward.Rewards{t.Rewards})
	if err != nil {
		return 0, err
	}
	o, err := outcome.OfValue(jobResult([]string{""}, map[string]*value.Object{"": metric}, 0, 0, 0))
	return o.Score, err
}

// ResultJSON returns the content of the trial's result.json, which has no line
// end.
func (t Trial) ResultJSON() ([]byte, error) {
	score, err := t.Score()
	if err != nil {
		return nil, err
	}
	obj := value.NewObject(10)
	obj.Append("agent_name", value.Str(t.AgentName))
	obj.Append("errored", value.Bool(t.Errored))
	obj.Append("model_name", optional(t.ModelName))
	obj.Append("reason_code", reasonValue(t.Reason))
	obj.Append("rewards", value.Null{})
	if t.Rewards != nil {
		obj.Set("rewards", t.Rewards.Object())
	}
	obj.Append("score", value.Float(score))
	obj.Append("source", optional(t.Source))
	obj.Append("status", value.Str(t.Status))
	obj.Append("task_name", value.Str(t.TaskName))
	obj.Append("trial_name", value.Str(t.TrialName))
	return value.AppendDumps(nil, obj, value.DumpsOptions{SortKeys: true}), nil
}

func optional(s *string) value.Value {
	if s == nil {
		return value.Null{}
	}
	return value.Str(*s)
}

func reasonValue(c outcome.Code) value.Value {
	if c == "" {
		return value.Null{}
	}
	return value.Str(c)
}

// Log returns the content of the trial's trial.log.
func (t Trial) Log() ([]byte, error) {
	score, err := t.Score()
	if err != nil {
		return nil, err
	}
	exit := ""
	if t.VerifierExit != nil {
		exit = strconv.Itoa(*t.VerifierExit)
	}
	var b []byte
	for _, line := range [][2]string{
		{"trial_name", t.TrialName},
		{"task_name", t.TaskName},
		{"status", string(t.Status)},
		{"errored", value.Repr(value.Bool(t.Errored))},
		{"reason_code", string(t.Reason)},
		{"agent_name", t.AgentName},
		{"model_name", orEmpty(t.ModelName)},
		{"verifier_return_code", exit},
		{"reward", value.FloatRepr(score)},
	} {
		b = append(b, line[0]+": "+line[1]+"\n"...)
	}
	return b, nil
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
