package trial

import (
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
)

// The limits of the phases (Harbor job format, section 3.3), overrides and
// multipliers applied. step may be nil.

func (a *attempt) environmentLimit() environment.Limit {
	return a.limit(harbor.Timeout{
		Base:            &a.task.Config.Environment.BuildTimeoutSec,
		PhaseMultiplier: a.cfg.EnvironmentBuildTimeoutMultiplier,
	})
}

// agentSetupLimit: an override of 0 seconds counts here, and nowhere else.
func (a *attempt) agentSetupLimit() environment.Limit {
	base := float64(harbor.AgentSetupTimeoutSec)
	if o := a.cfg.Agent.OverrideSetupTimeoutSec; o != nil {
		base = *o
	}
	return a.limit(harbor.Timeout{Base: &base, PhaseMultiplier: a.cfg.AgentSetupTimeoutMultiplier})
}

func (a *attempt) agentLimit(step *harbor.Step) environment.Limit {
	return a.limit(harbor.Timeout{
		Base: a.task.Config.AgentTimeoutSec(step), Override: a.cfg.Agent.OverrideTimeoutSec,
		Max: a.cfg.Agent.MaxTimeoutSec, PhaseMultiplier: a.cfg.AgentTimeoutMultiplier,
	})
}

func (a *attempt) verifierLimit(step *harbor.Step) environment.Limit {
	return a.limit(harbor.Timeout{
		Base: new(a.task.Config.VerifierTimeoutSec(step)), Override: a.cfg.Verifier.OverrideTimeoutSec,
		Max: a.cfg.Verifier.MaxTimeoutSec, PhaseMultiplier: a.cfg.VerifierTimeoutMultiplier,
	})
}

func (a *attempt) limit(t harbor.Timeout) environment.Limit {
	t.Multiplier = a.cfg.TimeoutMultiplier
	return environment.Limit{Sec: t.Seconds()}
}
