package trial

import (
	"os"

	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
)

// planner describes a trial's sandboxes.
type planner struct {
	*recorder
	r    *Runner
	cfg  *jobdir.TrialConfig
	task *harbor.Task
	net  *networks
}

// check names what the task asks for and no backend here has, in
// Harbor's words where it has them (Harbor task format, section 4.1).
func (p *planner) check() error {
	if err := p.task.CheckSupport(p.sandboxOptions()); err != nil {
		return err
	}
	return p.net.check()
}

// agentSpec describes the sandbox of the agent (Harbor task format, sections
// 4.6, 5.3 and 5.8).
func (p *planner) agentSpec() (sandbox.Spec, error) {
	plan := p.net.plan(nil)
	spec, err := p.environmentSpec(&p.task.Config.Environment, p.task.EnvironmentDir(), plan.AgentBaseline, p.cfg.Environment.ExtraDockerCompose)
	if err != nil {
		return spec, err
	}
	for _, w := range plan.Warnings {
		p.warn("%s", w)
	}
	if err := p.net.watch(&spec, p.net.switches()); err != nil {
		return spec, err
	}
	spec.Name = p.cfg.TrialName
	spec.Image.ForceBuild = p.cfg.Environment.ForceBuild
	if spec.Mounts, err = p.mounts(); err != nil {
		return spec, err
	}
	harbor.CompleteCompose(&spec, p.warn)
	return spec, nil
}

// environmentSpec describes what an environment table and its directory
// define, without a name and mounts.
func (p *planner) environmentSpec(table *harbor.Environment, dir string, network harbor.Network, extraCompose []string) (sandbox.Spec, error) {
	o := p.sandboxOptions()
	o.ExtraCompose = extraCompose
	spec, err := p.task.SandboxSpec(table, dir, network, o)
	spec.Warn = func(message string) { p.warn("%s", message) }
	spec.Labels = sandbox.Labels{Trial: p.cfg.TrialName, Owner: p.r.Owner}
	if p.cfg.JobID != nil {
		spec.Labels.Job = p.cfg.JobID.String()
	}
	return spec, err
}

func (p *planner) sandboxOptions() harbor.SandboxOptions {
	cfg := p.cfg.Environment
	return harbor.SandboxOptions{
		Backend:      p.r.Backend.Name(),
		Can:          p.r.Backend.Capabilities(),
		Host:         p.r.Lookup,
		Env:          cfg.Env.Map,
		OverrideCPUs: cfg.OverrideCPUs, OverrideMemoryMB: cfg.OverrideMemoryMB,
		OverrideGPUs: cfg.OverrideGPUs, OverrideTPU: cfg.OverrideTPU,
		CPUPolicy: cfg.CPUEnforcementPolicy, MemoryPolicy: cfg.MemoryEnforcementPolicy,
		Warn: p.warn,
	}
}

// mounts are the trial's directories, then those of the configuration.
func (p *planner) mounts() ([]sandbox.Mount, error) {
	all := environment.LogMounts(p.r.Backend.Capabilities(), p.dir)
	for _, m := range p.cfg.Environment.Mounts {
		mount, err := p.mount(m)
		if err != nil {
			return nil, err
		}
		all = append(all, mount)
	}
	return all, nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
