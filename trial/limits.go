package trial

import (
	"fmt"

	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
)

// CheckLimits reports a time limit of a task that leaves a phase of a trial no time,
// so that each trial would end with it: one that is not more than 0, and that the
// trial's configuration does not replace.
func CheckLimits(cfg *jobdir.TrialConfig, task *harbor.Config) error {
	check := func(key string, base, override *float64) error {
		if base == nil || !harbor.NoTime(*base) || override != nil && *override != 0 {
			return nil
		}
		return fmt.Errorf("%s is %v, which leaves no time: each trial would end at once", key, *base)
	}
	if err := check("[environment].build_timeout_sec", &task.Environment.BuildTimeoutSec, nil); err != nil {
		return err
	}
	stages := []*harbor.Step{nil}
	if task.HasSteps() {
		stages = nil
		for i := range task.Steps {
			stages = append(stages, &task.Steps[i])
		}
	}
	for _, step := range stages {
		of := ""
		if step != nil {
			of = fmt.Sprintf(" of step %q", step.Name)
		}
		if err := check("[agent].timeout_sec"+of, task.AgentTimeoutSec(step), cfg.Agent.OverrideTimeoutSec); err != nil {
			return err
		}
		if cfg.Verifier.Disable {
			continue
		}
		if err := check("[verifier].timeout_sec"+of, new(task.VerifierTimeoutSec(step)), cfg.Verifier.OverrideTimeoutSec); err != nil {
			return err
		}
	}
	return nil
}

// limits are the time limits of a trial's phases.
type limits struct {
	cfg  *jobdir.TrialConfig
	task *harbor.Task // nil for a cube's
}

// The limits of the phases (Harbor job format, section 3.3), overrides and
// multipliers applied. step may be nil.

func (l limits) environment() environment.Limit {
	base := float64(harbor.DefaultTimeoutSec) // of an agent's own sandbox
	if l.task != nil {
		base = l.task.Config.Environment.BuildTimeoutSec
	}
	return l.of(harbor.Timeout{Base: &base, PhaseMultiplier: l.cfg.EnvironmentBuildTimeoutMultiplier})
}

// agentSetup: an override of 0 seconds counts here, and nowhere else.
func (l limits) agentSetup() environment.Limit {
	base := float64(harbor.AgentSetupTimeoutSec)
	if o := l.cfg.Agent.OverrideSetupTimeoutSec; o != nil {
		base = *o
	}
	return l.of(harbor.Timeout{Base: &base, PhaseMultiplier: l.cfg.AgentSetupTimeoutMultiplier})
}

func (l limits) agent(step *harbor.Step) environment.Limit {
	if l.task == nil { // a cube's
		return l.of(harbor.Timeout{Override: l.cfg.Agent.OverrideTimeoutSec, Max: l.cfg.Agent.MaxTimeoutSec, PhaseMultiplier: l.cfg.AgentTimeoutMultiplier})
	}
	return l.of(harbor.Timeout{
		Base: l.task.Config.AgentTimeoutSec(step), Override: l.cfg.Agent.OverrideTimeoutSec,
		Max: l.cfg.Agent.MaxTimeoutSec, PhaseMultiplier: l.cfg.AgentTimeoutMultiplier,
	})
}

func (l limits) verifier(step *harbor.Step) environment.Limit {
	if l.task == nil {
		return l.of(harbor.Timeout{Override: l.cfg.Verifier.OverrideTimeoutSec, Max: l.cfg.Verifier.MaxTimeoutSec, PhaseMultiplier: l.cfg.VerifierTimeoutMultiplier})
	}
	return l.of(harbor.Timeout{
		Base: new(l.task.Config.VerifierTimeoutSec(step)), Override: l.cfg.Verifier.OverrideTimeoutSec,
		Max: l.cfg.Verifier.MaxTimeoutSec, PhaseMultiplier: l.cfg.VerifierTimeoutMultiplier,
	})
}

func (l limits) of(t harbor.Timeout) environment.Limit {
	t.Multiplier = l.cfg.TimeoutMultiplier
	return environment.Limit{Sec: t.Seconds()}
}
