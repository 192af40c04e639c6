package report

import (
	"time"

	"github.com/proctor-run/proctor/jobdir/scan"
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

// kindOf is the kind of a phase that a result names.
var kindOf = map[scan.PhaseName]PhaseKind{
	scan.EnvironmentSetup: PhaseEnvironment, scan.AgentSetup: PhaseAgentSetup, scan.AgentExecution: PhaseAgent, scan.Verifier: PhaseVerifier,
}

// phasesOf lists the phases of a trial that began at a moment, in microseconds since 1970,
// or 0 where that is not known.
func phasesOf(all []scan.Phase, began int64) []Phase {
	list := make([]Phase, 0, len(all))
	for _, p := range all {
		kind := kindOf[p.Name]
		out := Phase{Kind: kind, Name: string(kind), Seconds: secondsOf(p.Finished - p.Started)}
		if p.Step != "" {
			out.Name += " (step " + p.Step + ")"
		}
		if began != 0 {
			out.Offset = secondsOf(p.Started - began)
		}
		list = append(list, out)
	}
	return list
}

func secondsOf(micros int64) float64 { return (time.Duration(micros) * time.Microsecond).Seconds() }
