package report

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/jobdir/traces"
	"github.com/proctor-run/proctor/value"
)

// Steps are the numbers of the first and the last step that are chosen, from 1.
type Steps struct{ First, Last int }

// AllSteps chooses every step.
func AllSteps() Steps { return Steps{1, math.MaxInt} }

// Trajectory is a trajectory file: what proctor traj show --json prints per file.
type Trajectory struct {
	File   string `json:"file"`
	Totals Totals `json:"totals"`
	// Trajectory is the document with the coercions of the format, and with the
	// chosen steps alone.
	Trajectory json.RawMessage `json:"trajectory"`
	// Document is the whole trajectory, Steps are the chosen steps of it.
	Document *atif.Trajectory `json:"-"`
	Steps    []atif.Step      `json:"-"`
}

// Totals are those that the trajectory states, else the sums over its steps;
// null is unknown.
type Totals struct {
	Steps            int        `json:"steps"`
	PromptTokens     *value.Int `json:"prompt_tokens"`
	CachedTokens     *value.Int `json:"cached_tokens"`
	CompletionTokens *value.Int `json:"completion_tokens"`
	CostUSD          *Number    `json:"cost_usd"`
}

// ReadTrajectory reads a trajectory file and chooses steps of it.
//
// The error is an [*InvalidError] for a file that cannot be read as a trajectory.
func ReadTrajectory(f traces.File, chosen Steps) (*Trajectory, error) {
	v, err := f.Read()
	var t *atif.Trajectory
	if err == nil {
		t, err = atif.Decode(v)
	}
	if err != nil {
		return nil, &InvalidError{fmt.Errorf("%s: %w", f.Path(), err)}
	}
	s := &Trajectory{File: f.Path(), Document: t, Totals: totalsOf(t)}
	for _, step := range t.Steps {
		if step.ID >= chosen.First && step.ID <= chosen.Last {
			s.Steps = append(s.Steps, step)
		}
	}
	document := t.Object()
	steps, _ := document.Get("steps")
	if list, ok := steps.(value.List); ok {
		document.Set("steps", list[min(chosen.First-1, len(list)):min(chosen.Last, len(list))])
	}
	s.Trajectory = value.AppendPydantic(nil, document, 0)
	return s, nil
}

func totalsOf(t *atif.Trajectory) Totals {
	var sum Totals
	for i := range t.Steps {
		sum.add(t.Steps[i].Metrics)
	}
	return sum.or(t.FinalMetrics)
}

// add adds those of a step.
func (sum *Totals) add(m *atif.Metrics) {
	sum.Steps++
	if m == nil {
		return
	}
	sum.PromptTokens = addInt(sum.PromptTokens, m.PromptTokens)
	sum.CachedTokens = addInt(sum.CachedTokens, m.CachedTokens)
	sum.CompletionTokens = addInt(sum.CompletionTokens, m.CompletionTokens)
	if m.CostUSD != nil {
		if sum.CostUSD == nil {
			sum.CostUSD = new(Number)
		}
		*sum.CostUSD += Number(*m.CostUSD)
	}
}

// or has what the trajectory states in the place of sums.
func (sum Totals) or(f *atif.FinalMetrics) Totals {
	if f == nil {
		return sum
	}
	if f.PromptTokens != nil {
		sum.PromptTokens = f.PromptTokens
	}
	if f.CachedTokens != nil {
		sum.CachedTokens = f.CachedTokens
	}
	if f.CompletionTokens != nil {
		sum.CompletionTokens = f.CompletionTokens
	}
	if f.CostUSD != nil {
		sum.CostUSD = new(Number(*f.CostUSD))
	}
	return sum
}

// addInt adds what is known.
func addInt(sum, n *value.Int) *value.Int {
	switch {
	case n == nil:
		return sum
	case sum == nil:
		return n
	}
	return new(sum.Add(*n))
}

// TrajectoryValidation is whether a trajectory keeps the rules of its format: what
// proctor traj validate --json prints per file.
type TrajectoryValidation struct {
	File     string              `json:"file"`
	Valid    bool                `json:"valid"`
	Problems []TrajectoryProblem `json:"problems"`
}

// TrajectoryProblem is one thing that is wrong with a trajectory.
type TrajectoryProblem struct {
	// Location is "trajectory.steps.0.message"; empty when the file is no document
	// that has places.
	Location string `json:"location,omitempty"`
	Message  string `json:"message"`
}

// ValidateTrajectory finds everything that is wrong with a trajectory file. With
// images, those that it names have to exist. A file that cannot be opened is an
// error.
func ValidateTrajectory(f traces.File, images bool) (*TrajectoryValidation, error) {
	problems, err := f.Validate(images)
	if err != nil {
		return nil, err
	}
	v := &TrajectoryValidation{File: f.Path(), Valid: len(problems) == 0, Problems: []TrajectoryProblem{}}
	for _, p := range problems {
		v.Problems = append(v.Problems, TrajectoryProblem(p))
	}
	return v, nil
}
