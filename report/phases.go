package report

import (
	"time"

	"github.com/proctor-run/proctor/jobdir"
)

// PhaseKind is a kind of phase of a trial.
type PhaseKind string

// The kinds.
const (
	PhaseEnvironment PhaseKind = "environment"
	PhaseAgentSetup  PhaseKind = "agent setup"
	PhaseAgent       PhaseKind = "agent"
	PhaseVerifier    PhaseKind = "verifier"
)

// phaseKinds are the kinds in the order in which they come.
var phaseKinds = []PhaseKind{PhaseEnvironment, PhaseAgentSetup, PhaseAgent, PhaseVerifier}

// Phase is one phase of a trial that has ended.
type Phase struct {
	Kind PhaseKind `json:"kind"`
	// Name is the kind, with the step that it belongs to.
	Name string `json:"name"`
	// Offset is when it began, in seconds after the trial.
	Offset  float64 `json:"offset_seconds"`
	Seconds float64 `json:"seconds"`
}

// phasesOf lists the phases of a trial, those of its steps among them.
func phasesOf(r *jobdir.TrialResult) []Phase {
	var list []Phase
	add := func(kind PhaseKind, step string, t *jobdir.Timing) {
		if t == nil || t.StartedAt == nil || t.FinishedAt == nil {
			return
		}
		start := t.StartedAt.In(time.UTC)
		p := Phase{Kind: kind, Name: string(kind), Seconds: t.FinishedAt.In(time.UTC).Sub(start).Seconds()}
		if step != "" {
			p.Name += " (step " + step + ")"
		}
		if r.StartedAt != nil {
			p.Offset = start.Sub(r.StartedAt.In(time.UTC)).Seconds()
		}
		list = append(list, p)
	}
	add(PhaseEnvironment, "", r.EnvironmentSetup)
	add(PhaseAgentSetup, "", r.AgentSetup)
	for _, s := range r.StepResults {
		add(PhaseAgent, s.StepName, s.AgentExecution)
		add(PhaseVerifier, s.StepName, s.Verifier)
	}
	if len(r.StepResults) == 0 {
		add(PhaseAgent, "", r.AgentExecution)
		add(PhaseVerifier, "", r.Verifier)
	}
	return list
}
