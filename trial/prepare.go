package trial

import (
	"path"
	"path/filepath"

	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
)

// prepare loads the task and builds everything that can be built without a
// sandbox (Harbor job format, section 3.1).
func (a *attempt) prepare() error {
	task, err := a.r.load(&a.cfg)
	if err != nil {
		return err
	}
	a.task, a.limits.task, a.artifacts.task, a.agents.task = task, task, task, task
	a.net = &networks{recorder: a.recorder, backend: a.r.Backend, cfg: &a.cfg, task: task, fixed: a.agents.stepped()} // a reset brings another sandbox
	a.plans = &planner{recorder: a.recorder, r: a.r, cfg: &a.cfg, task: task, net: a.net}
	a.res.TaskName = task.Name
	sum, err := harbor.Checksum(task.Dir)
	if err != nil {
		return err
	}
	a.res.TaskChecksum = sum
	if a.r.Amend != nil {
		a.r.Amend(a.cfg, task)
	}
	if a.agents.stepped() {
		if err := harborcube.Check(task); err != nil {
			return err
		}
	}
	if err := a.plans.check(); err != nil {
		return err
	}
	if a.equipment, err = findEquipment(task, a.cfg.Agent, a.r.home()); err != nil {
		return err
	}
	if a.agents.stepped() {
		err = a.prepareCube(&CubeTask{Name: task.Name, Checksum: sum})
	} else if a.agent, err = a.agents.newAgent(); err == nil {
		a.res.AgentInfo = agentInfo(a.cfg.Agent, a.agent.Info())
	}
	if err != nil {
		return err
	}
	return a.planEnvironment()
}

// planEnvironment describes the trial's environment, which is started later.
func (a *attempt) planEnvironment() error {
	spec, err := a.plans.agentSpec()
	if err != nil {
		return err
	}
	spec.Progress = func(message string) { a.emit(EventProgress, message) }
	a.env = environment.New(environment.Config{
		Backend: a.r.Backend, Task: a.task, Spec: spec, Logs: a.dir,
		StartLimit: a.limits.environment(), Uploads: a.equipment.uploads(),
		Lookup: a.r.Lookup, VerifierEnv: a.cfg.Verifier.Env.Map,
		OutputLimit: a.r.outputLimit(), Sealed: a.r.SealedVerifier, Now: a.r.Now,
	})
	return nil
}

// load reads the task of a trial.
func (r *Runner) load(cfg *jobdir.TrialConfig) (*harbor.Task, error) {
	dir, err := r.taskDir(cfg)
	if err != nil {
		return nil, err
	}
	return harbor.Load(dir, harbor.LoadOptions{ExtraInstructions: cfg.ExtraInstructionPaths, Home: r.home()})
}

// taskDir is where the task lies on this machine.
func (r *Runner) taskDir(cfg *jobdir.TrialConfig) (string, error) {
	if cfg.Task.Kind() == jobdir.LocalTask {
		return *cfg.Task.Path, nil
	}
	if r.TaskDir == nil {
		return "", exception.Errorf(exception.ValueError, "task %q is not a local directory, and nothing here fetches it", taskBaseName(cfg.Task))
	}
	return r.TaskDir(cfg.Task)
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
