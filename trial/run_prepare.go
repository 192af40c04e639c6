package trial

import (
	"os"
	"path"
	"path/filepath"

	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/environment"
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
	if a.stepped() {
		if err := harborcube.Check(task); err != nil {
			return err
		}
		a.fixedNetwork = true // a reset brings another sandbox
	}
	if err := a.refuseUnsupported(); err != nil {
		return err
	}
	if err := a.findEquipment(); err != nil {
		return err
	}
	if a.stepped() {
		err = a.prepareCube(&CubeTask{Name: task.Name, Checksum: sum})
	} else if a.agent, err = a.newAgent(); err == nil {
		a.res.AgentInfo = agentInfo(a.cfg.Agent, a.agent.Info())
	}
	if err != nil {
		return err
	}
	return a.planEnvironment()
}

// planEnvironment describes the trial's environment, which is started later.
func (a *attempt) planEnvironment() error {
	spec, err := a.newSpec()
	if err != nil {
		return err
	}
	spec.Progress = func(message string) { a.emit(EventProgress, message) }
	a.env = environment.New(environment.Config{
		Backend: a.r.Backend, Task: a.task, Spec: spec, Logs: a.dir,
		StartLimit: a.environmentLimit(), Uploads: a.equipment.uploads(),
		Lookup: a.r.Lookup, VerifierEnv: a.cfg.Verifier.Env.Map,
		OutputLimit: a.outputLimit(), Sealed: a.r.SealedVerifier, Now: a.r.Now,
	})
	return nil
}

func (a *attempt) loadTask() (*harbor.Task, error) {
	dir, err := a.taskDir()
	if err != nil {
		return nil, err
	}
	return harbor.Load(dir, harbor.LoadOptions{ExtraInstructions: a.cfg.ExtraInstructionPaths, Home: a.home()})
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
	all := environment.LogMounts(a.r.Backend.Capabilities(), a.dir)
	for _, m := range a.cfg.Environment.Mounts {
		mount, err := a.mount(m)
		if err != nil {
			return nil, err
		}
		all = append(all, mount)
	}
	return all, nil
}
