package trial

import (
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
)

// limits are the time limits of a trial's phases.
type limits struct {
	cfg  *jobdir.TrialConfig
	task *harbor.Task // nil while none is loaded
}

// The limits of the phases (Harbor job format, section 3.3), overrides and
// multipliers applied. step may be nil.

func (l *limits) environmentLimit() environment.Limit {
	return l.limit(harbor.Timeout{
		Base:            &l.task.Config.Environment.BuildTimeoutSec,
		PhaseMultiplier: l.cfg.EnvironmentBuildTimeoutMultiplier,
	})
}

// agentSetupLimit: an override of 0 seconds counts here, and nowhere else.
func (l *limits) agentSetupLimit() environment.Limit {
	base := float64(harbor.AgentSetupTimeoutSec)
	if o := l.cfg.Agent.OverrideSetupTimeoutSec; o != nil {
		base = *o
	}
	return l.limit(harbor.Timeout{Base: &base, PhaseMultiplier: l.cfg.AgentSetupTimeoutMultiplier})
}

func (l *limits) agentLimit(step *harbor.Step) environment.Limit {
	return l.limit(harbor.Timeout{
		Base: l.task.Config.AgentTimeoutSec(step), Override: l.cfg.Agent.OverrideTimeoutSec,
		Max: l.cfg.Agent.MaxTimeoutSec, PhaseMultiplier: l.cfg.AgentTimeoutMultiplier,
	})
}

func (l *limits) verifierLimit(step *harbor.Step) environment.Limit {
	return l.limit(harbor.Timeout{
		Base: new(l.task.Config.VerifierTimeoutSec(step)), Override: l.cfg.Verifier.OverrideTimeoutSec,
		Max: l.cfg.Verifier.MaxTimeoutSec, PhaseMultiplier: l.cfg.VerifierTimeoutMultiplier,
	})
}

func (l *limits) limit(t harbor.Timeout) environment.Limit {
	t.Multiplier = l.cfg.TimeoutMultiplier
	return environment.Limit{Sec: t.Seconds()}
}
