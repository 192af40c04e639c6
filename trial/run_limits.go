package trial

import (
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/pyvalue"
)

// limits are the time limits of a trial, overrides and multipliers applied.
type limits struct {
	environment, agentSetup, agent, verifier limit
}

// limit is a time limit in seconds, with its spelling in messages; nil means
// none.
type limit struct{ sec *float64 }

func (l limit) String() string {
	if l.sec == nil {
		return "inf"
	}
	return pyvalue.FloatRepr(*l.sec)
}

// newLimits computes the limit of each phase (Harbor job format, section 3.3).
func newLimits(cfg Config, task *harbor.Config) limits {
	// An override of 0 seconds counts for the set-up alone.
	setup := float64(harbor.AgentSetupTimeoutSec)
	if o := cfg.Agent.OverrideSetupTimeoutSec; o != nil {
		setup = *o
	}
	of := func(t harbor.Timeout) limit {
		t.Multiplier = cfg.TimeoutMultiplier
		return limit{t.Seconds()}
	}
	return limits{
		environment: of(harbor.Timeout{
			Base: &task.Environment.BuildTimeoutSec, PhaseMultiplier: cfg.EnvironmentBuildTimeoutMultiplier,
		}),
		agentSetup: of(harbor.Timeout{Base: &setup, PhaseMultiplier: cfg.AgentSetupTimeoutMultiplier}),
		agent: of(harbor.Timeout{
			Base: task.AgentTimeoutSec(nil), Override: cfg.Agent.OverrideTimeoutSec,
			Max: cfg.Agent.MaxTimeoutSec, PhaseMultiplier: cfg.AgentTimeoutMultiplier,
		}),
		verifier: of(harbor.Timeout{
			Base: new(task.VerifierTimeoutSec(nil)), Override: cfg.Verifier.OverrideTimeoutSec,
			Max: cfg.Verifier.MaxTimeoutSec, PhaseMultiplier: cfg.VerifierTimeoutMultiplier,
		}),
	}
}
