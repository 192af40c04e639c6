package scan

import "github.com/proctor-run/proctor/jobdir"

// PhaseName is what a result calls a phase of a trial.
type PhaseName string

// The phases, in the order in which they come.
const (
	EnvironmentSetup PhaseName = "environment_setup"
	AgentSetup       PhaseName = "agent_setup"
	AgentExecution   PhaseName = "agent_execution"
	Verifier         PhaseName = "verifier"
)

// Phase is a phase of a trial that has ended.
type Phase struct {
	Name PhaseName
	Step string // that it belongs to; empty for one of the trial itself
	// Started and Finished are in microseconds since 1970.
	Started, Finished int64
}

// PhasesOf lists the phases of a trial, those of its steps among them: where there are
// steps the trial's own agent and verifier are theirs. A phase without a beginning or an
// end is none.
func PhasesOf(r *jobdir.TrialResult) []Phase {
	var p phases
	p.own[0], p.own[1], p.own[2], p.own[3] = spanOf(r.EnvironmentSetup), spanOf(r.AgentSetup), spanOf(r.AgentExecution), spanOf(r.Verifier)
	for _, s := range r.StepResults {
		p.steps = append(p.steps, step{s.StepName, spanOf(s.AgentExecution), spanOf(s.Verifier)})
	}
	return p.list()
}

// span is when something began and ended; ok when it has done both.
type span struct {
	from, to int64
	ok       bool
}

func spanOf(t *jobdir.Timing) span {
	if t == nil || t.StartedAt == nil || t.FinishedAt == nil {
		return span{}
	}
	return span{microsOf(*t.StartedAt), microsOf(*t.FinishedAt), true}
}

type step struct {
	name            string
	agent, verifier span
}

// phases are those of a trial as its result has them.
type phases struct {
	own   [4]span // environment setup, agent setup, agent, verifier
	steps []step
}

func (p *phases) list() []Phase {
	list := make([]Phase, 0, 4)
	add := func(name PhaseName, step string, s span) {
		if s.ok {
			list = append(list, Phase{name, step, s.from, s.to})
		}
	}
	add(EnvironmentSetup, "", p.own[0])
	add(AgentSetup, "", p.own[1])
	for _, s := range p.steps {
		add(AgentExecution, s.name, s.agent)
		add(Verifier, s.name, s.verifier)
	}
	if len(p.steps) == 0 {
		add(AgentExecution, "", p.own[2])
		add(Verifier, "", p.own[3])
	}
	return list
}
