package trial

import (
	"slices"

	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
)

// planner describes a trial's sandboxes.
type planner struct {
	r    *Runner
	cfg  *jobdir.TrialConfig
	task *harbor.Task
	net  *networks
	dir  string // of the trial
	// apart: the sandbox is the agent's own and not the task's. Of the trial's directories
	// it sees the agent's alone.
	apart bool
	warn  func(format string, args ...any)
}

// check refuses what the task asks for and the backend lacks, in Harbor's words
// where it has them (Harbor task format, section 4.1).
func (p *planner) check() error {
	if err := p.environment().Check(); err != nil {
		return err
	}
	return p.net.check()
}

// agentSpec describes the sandbox of the agent (Harbor task format, sections
// 4.6, 5.3 and 5.8).
func (p *planner) agentSpec() (sandbox.Spec, error) {
	mounts, err := p.mounts()
	if err != nil {
		return sandbox.Spec{}, err
	}
	plan := p.net.plan(nil)
	spec, err := p.spec(environment.Request{
		Name: p.cfg.TrialName, Network: plan.AgentBaseline, Mounts: mounts,
		ExtraCompose: p.cfg.Environment.ExtraDockerCompose, ForceBuild: p.cfg.Environment.ForceBuild,
	}, p.net.switches())
	if err != nil {
		return spec, err
	}
	for _, w := range plan.Warnings {
		p.warn("%s", w)
	}
	spec.Keep = KeepsSandbox(p.cfg.Environment)
	return spec, nil
}

// verifierSpec describes a sandbox of the verifier's own, for a step or a
// single-step task (Harbor task format, section 6.4). logs is the directory of
// the host for the verifier's log files; empty means that the sandbox keeps them.
func (p *planner) verifierSpec(step *harbor.Step, logs string) (sandbox.Spec, error) {
	key := "trial"
	if step != nil {
		key = step.Name
	}
	var mounts []sandbox.Mount
	if logs != "" {
		mounts = []sandbox.Mount{{Source: logs, Target: harbor.VerifierLogsDir, Guarded: true}}
	}
	plan := p.net.plan(step)
	table := p.task.Config.VerifierEnvironment(step)
	return p.spec(environment.Request{
		Name: harbor.VerifierSessionID(p.cfg.TrialName, key), Network: *plan.VerifierBaseline, Mounts: mounts,
		Table: &table, Dir: p.task.VerifierDir(step),
	}, verifierSwitches(plan))
}

// verifierSwitches reports whether the tests need another network policy than a
// verifier's own sandbox starts with.
func verifierSwitches(plan harbor.NetworkPlan) bool {
	return !plan.VerifierPhase.Equal(*plan.VerifierBaseline)
}

// spec describes a sandbox whose network policy is switched, or not.
func (p *planner) spec(r environment.Request, switches bool) (sandbox.Spec, error) {
	spec, err := p.environment().Spec(r)
	if err != nil {
		return spec, err
	}
	spec.Warn = func(message string) { p.warn("%s", message) }
	return spec, p.net.watch(&spec, switches)
}

// environment has the settings of sandboxes in the trial's configuration.
func (p *planner) environment() *environment.Planner {
	cfg := p.cfg.Environment
	return &environment.Planner{
		Backend: p.r.Backend.Name(), Can: p.r.Backend.Capabilities(), Task: p.task, Labels: p.r.labels(p.cfg),
		Lookup:       p.r.Lookup,
		Env:          cfg.Env.Map,
		OverrideCPUs: cfg.OverrideCPUs, OverrideMemoryMB: cfg.OverrideMemoryMB,
		OverrideStorageMB: cfg.OverrideStorageMB, OverrideGPUs: cfg.OverrideGPUs, OverrideTPU: cfg.OverrideTPU,
		CPUPolicy: cfg.CPUEnforcementPolicy, MemoryPolicy: cfg.MemoryEnforcementPolicy,
		Warn: p.warn,
	}
}

func (p *planner) getenv(name string) string {
	v, _ := p.r.Lookup(name)
	return v
}

// mounts are the trial's directories, then those of the configuration.
func (p *planner) mounts() ([]sandbox.Mount, error) {
	all := environment.LogMounts(p.r.Backend.Capabilities(), p.dir)
	if p.apart {
		all = slices.DeleteFunc(all, func(m sandbox.Mount) bool { return m.Target != harbor.AgentLogsDir })
	}
	if !p.r.AllowEngineSocket {
		if err := CheckMounts(p.cfg.Environment.Mounts, p.getenv); err != nil {
			return nil, err
		}
	}
	for _, m := range p.cfg.Environment.Mounts {
		mount, err := p.mount(m)
		if err != nil {
			return nil, err
		}
		all = append(all, mount)
	}
	return all, nil
}
