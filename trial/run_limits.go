package trial

import (
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/value"
)

// limit is a time limit in seconds, with its spelling in messages; nil means
// none.
type limit struct{ sec *float64 }

func (l limit) String() string {
	if l.sec == nil {
		return "inf"
	}
	return value.FloatRepr(*l.sec)
}

// The limits of the phases (Harbor job format, section 3.3), overrides and
// multipliers applied. step may be nil.

func (a *attempt) environmentLimit() limit {
	return a.limit(harbor.Timeout{
		Base:            &a.task.Config.Environment.BuildTimeoutSec,
		PhaseMultiplier: a.cfg.EnvironmentBuildTimeoutMultiplier,
	})
}

// agentSetupLimit: an override of 0 seconds counts here, and nowhere else.
func (a *attempt) agentSetupLimit() limit {
	base := float64(harbor.AgentSetupTimeoutSec)
	if o := a.cfg.Agent.OverrideSetupTimeoutSec; o != nil {
		base = *o
	}
	return a.limit(harbor.Timeout{Base: &base, PhaseMultiplier: a.cfg.AgentSetupTimeoutMultiplier})
}

func (a *attempt) agentLimit(step *harbor.Step) limit {
	return a.limit(harbor.Timeout{
		Base: a.task.Config.AgentTimeoutSec(step), Override: a.cfg.Agent.OverrideTimeoutSec,
		Max: a.cfg.Agent.MaxTimeoutSec, PhaseMultiplier: a.cfg.AgentTimeoutMultiplier,
	})
}

func (a *attempt) verifierLimit(step *harbor.Step) limit {
	return a.limit(harbor.Timeout{
		Base: new(a.task.Config.VerifierTimeoutSec(step)), Override: a.cfg.Verifier.OverrideTimeoutSec,
		Max: a.cfg.Verifier.MaxTimeoutSec, PhaseMultiplier: a.cfg.VerifierTimeoutMultiplier,
	})
}

func (a *attempt) limit(t harbor.Timeout) limit {
	t.Multiplier = a.cfg.TimeoutMultiplier
	return limit{t.Seconds()}
}
