package trial

import (
	"os"
	"path"
	"path/filepath"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
)

// prepare loads the task and builds everything that can be built without a
// sandbox (Harbor job format, section 3.1).
func (a *attempt) prepare() error {
	task, err := a.loadTask()
	if err != nil {
		return err
	}
	a.task = task
	a.res.TaskName = task.Name
	sum, err := harbor.Checksum(task.Dir)
	if err != nil {
		return err
	}
	a.res.TaskChecksum = sum
	if a.r.Amend != nil {
		a.r.Amend(a.cfg, task)
	}
	if err := a.refuseUnsupported(); err != nil {
		return err
	}
	if err := a.equip(); err != nil {
		return err
	}
	if a.agent, err = a.newAgent(); err != nil {
		return err
	}
	a.res.AgentInfo = agentInfo(a.cfg.Agent, a.agent.Info())
	a.spec, err = a.newSpec()
	return err
}

func (a *attempt) loadTask() (*harbor.Task, error) {
	dir, err := a.taskDir()
	if err != nil {
		return nil, err
	}
	return harbor.Load(dir, harbor.LoadOptions{ExtraInstructions: a.cfg.ExtraInstructionPaths})
}

// taskDir is where the task lies on this machine.
func (a *attempt) taskDir() (string, error) {
	if a.cfg.Task.Kind() == jobdir.LocalTask {
		return *a.cfg.Task.Path, nil
	}
	if a.r.TaskDir == nil {
		return "", exception.Errorf(exception.ValueError, "task %q is not a local directory, and nothing here fetches it", taskBaseName(a.cfg.Task))
	}
	return a.r.TaskDir(a.cfg.Task)
}

// taskBaseName is what a task is called before it is loaded.
func taskBaseName(t jobdir.TaskConfig) string {
	switch {
	case t.Name != nil:
		return *t.Name
	case t.Path != nil:
		return path.Base(filepath.ToSlash(*t.Path))
	}
	return ""
}

// refuseUnsupported names what the task asks for and no backend here has, in
// Harbor's words where it has them (Harbor task format, section 4.1).
func (a *attempt) refuseUnsupported() error {
	if err := a.task.CheckSupport(a.sandboxOptions()); err != nil {
		return err
	}
	return a.planNetworks()
}

// newAgent builds the agent (Harbor agent format, section 1.4).
func (a *attempt) newAgent() (agent.Agent, error) {
	cfg := a.cfg.Agent
	env, err := harbor.ResolveEnv(cfg.Env.Map, a.r.Lookup)
	if err != nil {
		return nil, err
	}
	vars := harbor.Assignments(env)
	name := ""
	if cfg.Name != nil {
		name = *cfg.Name
	}
	switch name {
	case "oracle":
		script := a.task.SolutionScript(nil)
		a.oracle = &agent.Oracle{
			Dir:    filepath.Dir(script),
			Script: filepath.Base(script),
			Env: func() ([]string, error) {
				own, err := harbor.ResolveEnv(a.task.Config.Solution.Env, a.r.Lookup)
				return append(vars[:len(vars):len(vars)], harbor.Assignments(own)...), err
			},
		}
		return a.oracle, nil
	case "nop":
		return agent.Nop{}, nil
	case CommandAgent:
		return newCommandAgent(cfg, vars)
	}
	if name == "" && cfg.ImportPath != nil {
		return nil, exception.Errorf(exception.ValueError, "agent %q is Python code, which proctor cannot run; use -a command", *cfg.ImportPath)
	}
	return nil, exception.Errorf(exception.ValueError, "Agent name %s is not valid. Valid agent names: oracle, nop, command, scripted", name)
}

// newSpec describes the sandbox of the agent (Harbor task format, sections
// 4.6, 5.3 and 5.8).
func (a *attempt) newSpec() (sandbox.Spec, error) {
	plan := a.network(nil)
	spec, err := a.environmentSpec(&a.task.Config.Environment, a.task.EnvironmentDir(), plan.AgentBaseline, a.cfg.Environment.ExtraDockerCompose)
	if err != nil {
		return spec, err
	}
	for _, w := range plan.Warnings {
		a.warn("%s", w)
	}
	if err := a.watchNetwork(&spec, a.agentSwitches()); err != nil {
		return spec, err
	}
	spec.Name = a.cfg.TrialName
	spec.Image.ForceBuild = a.cfg.Environment.ForceBuild
	if spec.Mounts, err = a.mounts(); err != nil {
		return spec, err
	}
	harbor.CompleteCompose(&spec, a.warn)
	return spec, nil
}

// environmentSpec describes what an environment table and its directory
// define, without a name and mounts.
func (a *attempt) environmentSpec(table *harbor.Environment, dir string, network harbor.Network, extraCompose []string) (sandbox.Spec, error) {
	o := a.sandboxOptions()
	o.ExtraCompose = extraCompose
	spec, err := a.task.SandboxSpec(table, dir, network, o)
	spec.Warn = func(message string) { a.warn("%s", message) }
	spec.Labels = sandbox.Labels{Trial: a.cfg.TrialName, Owner: a.r.Owner}
	if a.cfg.JobID != nil {
		spec.Labels.Job = a.cfg.JobID.String()
	}
	return spec, err
}

func (a *attempt) sandboxOptions() harbor.SandboxOptions {
	cfg := a.cfg.Environment
	return harbor.SandboxOptions{
		Backend:      a.r.Backend.Name(),
		Can:          a.r.Backend.Capabilities(),
		HostRoot:     a.r.Backend.Name() == jobdir.BackendHost,
		Host:         a.r.Lookup,
		Env:          cfg.Env.Map,
		OverrideCPUs: cfg.OverrideCPUs, OverrideMemoryMB: cfg.OverrideMemoryMB,
		OverrideGPUs: cfg.OverrideGPUs, OverrideTPU: cfg.OverrideTPU,
		CPUPolicy: cfg.CPUEnforcementPolicy, MemoryPolicy: cfg.MemoryEnforcementPolicy,
		Warn: a.warn,
	}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// mounts are the trial's directories, then those of the configuration.
func (a *attempt) mounts() ([]sandbox.Mount, error) {
	var all []sandbox.Mount
	if a.r.Backend.Capabilities().Mounted {
		for _, d := range mountedDirs {
			all = append(all, sandbox.Mount{Source: a.hostDir(d.host), Target: d.inside})
		}
	}
	for _, m := range a.cfg.Environment.Mounts {
		mount, err := a.mount(m)
		if err != nil {
			return nil, err
		}
		all = append(all, mount)
	}
	return all, nil
}
