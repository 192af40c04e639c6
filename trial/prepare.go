package trial

import (
	"path"
	"path/filepath"

	"github.com/proctor-run/proctor/agent"
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
	task, err := a.r.load(&a.cfg)
	if err != nil {
		return err
	}
	agents := a.agents(task)
	stepped := agents.stepped()
	a.task, a.res.TaskName = task, task.Name
	a.veil.cover(a.r.source().OfTrial(a.cfg, task))
	a.limits = limits{cfg: &a.cfg, task: task}
	a.artifacts = &artifacts{dir: a.hostDir("artifacts"), cfg: &a.cfg, task: task, mounted: a.r.Backend.Capabilities().Mounted}
	a.net = &networks{dir: a.dir, backend: a.r.Backend, cfg: &a.cfg, task: task, fixed: stepped, veil: a.veil} // a reset brings another sandbox
	a.plans = &planner{r: a.r, cfg: &a.cfg, task: task, net: a.net, dir: a.dir, warn: a.warn}
	sum, err := harbor.Checksum(task.Dir)
	if err != nil {
		return err
	}
	a.res.TaskChecksum = sum
	if a.r.Amend != nil {
		a.r.Amend(a.cfg, task)
	}
	if a.r.Hardened {
		task.Config.Isolate()
	}
	if stepped {
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
	if stepped {
		err = a.prepareCube(agents, &CubeTask{Name: task.Name, Checksum: sum})
	} else {
		_, err = a.prepareAgent(agents, false)
	}
	if err != nil {
		return err
	}
	return a.planEnvironment()
}

// prepareAgent builds the agent and plans its way to a model. It returns what the agent is
// made of.
func (a *attempt) prepareAgent(agents *agentBuilder, stepped bool) (agent.Config, error) {
	built, entry, made, err := agents.newAgent(stepped)
	if err != nil {
		return made, err
	}
	a.agent, a.trusted = built, entry.Trusted
	if _, ok := built.(agent.Provisioner); ok {
		share, err := made.Shares()
		if err != nil {
			return made, err
		}
		a.alone = !share
	}
	if entry.Digest != nil {
		if a.notes.AgentDigest, err = entry.Digest(made); err != nil {
			return made, err
		}
	}
	a.res.AgentInfo = agentInfo(a.cfg.Agent, built.Info())
	a.logs = entry.Logs
	if entry.Install != nil {
		if a.installation, err = entry.Install(made); err != nil {
			return made, err
		}
	}
	if a.gateway, err = a.planGateway(entry, made); err != nil {
		return made, err
	}
	return made, a.planDirect(entry, made)
}

// agents builds agents for a task, nil for one of a cube.
func (a *attempt) agents(task *harbor.Task) *agentBuilder {
	return &agentBuilder{r: a.r, cfg: &a.cfg, task: task, logDir: a.hostDir("agent"), redact: a.veil.writer, models: a.models()}
}

// planEnvironment describes the trial's environment, which is started later.
func (a *attempt) planEnvironment() error {
	spec, err := a.plans.agentSpec()
	if err != nil {
		return err
	}
	if err := a.findInstalled(&spec); err != nil {
		return err
	}
	a.mountsMore = mountsMore(&spec, environment.LogMounts(a.r.Backend.Capabilities(), a.dir))
	a.builds = builds(&spec) && !a.r.Backend.Capabilities().OwnRoot
	spec.Progress = func(message string) { a.emit(EventProgress, message) }
	a.env = environment.New(environment.Config{
		Backend: a.r.Backend, Task: a.task, Spec: spec, Logs: a.dir,
		StartLimit: a.limits.environment(), Uploads: a.equipment.uploads(),
		Lookup: a.r.Lookup, VerifierEnv: a.cfg.Verifier.Env.Map,
		OutputLimit: a.r.outputLimit(), Redact: a.veil.writer, Sealed: a.r.SealedVerifier, Now: a.r.Now,
	})
	return nil
}

// builds reports whether an environment's images are built, or may be: those of a compose
// project are not looked at.
func builds(spec *sandbox.Spec) bool {
	return spec.Compose != nil || spec.Image.Build != nil && (spec.Image.Ref == "" || spec.Image.ForceBuild)
}

// load reads the task of a trial.
func (r *Runner) load(cfg *jobdir.TrialConfig) (*harbor.Task, error) {
	dir, err := r.taskDir(cfg)
	if err != nil {
		return nil, err
	}
	return harbor.Load(dir, harbor.LoadOptions{ExtraInstructions: cfg.ExtraInstructionPaths, Home: r.home()})
}

// taskDir returns the task's directory on this machine.
func (r *Runner) taskDir(cfg *jobdir.TrialConfig) (string, error) {
	if cfg.Task.Kind() == jobdir.LocalTask {
		return *cfg.Task.Path, nil
	}
	if r.TaskDir == nil {
		return "", exception.Errorf(exception.ValueError, "task %q is not a local directory, and nothing here fetches it", taskBaseName(cfg.Task))
	}
	return r.TaskDir(cfg.Task)
}

// taskBaseName is the name of a task before it is loaded.
func taskBaseName(t jobdir.TaskConfig) string {
	switch {
	case t.Name != nil:
		return *t.Name
	case t.Path != nil:
		return path.Base(filepath.ToSlash(*t.Path))
	}
	return ""
}
