package trial

import (
	"path/filepath"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
)

// CheckAgent reports whether trials can be run with an agent of this
// configuration. cube tells that their tasks are those of a cube. What it finds
// every trial would find: it is for before the first one.
//
// Templates in the agent's variables are not looked at, and no trial calls it:
// job directories that other programs made may hold what it refuses.
func CheckAgent(known agent.Registry, cfg jobdir.AgentConfig, cube bool) error {
	if cfg.Name == nil && cfg.ImportPath != nil {
		return pythonAgent(cfg)
	}
	return known.Check(agentConfig(cfg), cube)
}

func pythonAgent(cfg jobdir.AgentConfig) error {
	return exception.Errorf(exception.ValueError, "agent %q is Python code, which proctor cannot run; use -a command", *cfg.ImportPath)
}

// agentConfig is what a configuration alone says of an agent.
func agentConfig(cfg jobdir.AgentConfig) agent.Config {
	c := agent.Config{Name: agentName(cfg), Settings: cfg.Kwargs}
	if cfg.ModelName != nil {
		c.Model = *cfg.ModelName
	}
	return c
}

func agentName(cfg jobdir.AgentConfig) string {
	if cfg.Name == nil {
		return ""
	}
	return *cfg.Name
}

// agentBuilder finds and builds the agent that a trial names.
type agentBuilder struct {
	r      *Runner
	cfg    *jobdir.TrialConfig
	task   *harbor.Task // nil for a cube's
	logDir string
	entry  agent.Entry // once the agent was found
}

// stepped reports whether the agent works through CUBE's layer.
func (b *agentBuilder) stepped() bool {
	e, ok := b.r.Agents.Find(agentName(b.cfg.Agent))
	return ok && e.Sandboxed == nil
}

// resolve finds the agent that the trial names and what it is made of
// (Harbor agent format, section 1.4).
func (b *agentBuilder) resolve(stepped bool) (agent.Config, error) {
	env, err := harbor.ResolveEnv(b.cfg.Agent.Env.Map, b.r.Lookup)
	if err != nil {
		return agent.Config{}, err
	}
	made := agentConfig(b.cfg.Agent)
	made.Env = harbor.Assignments(env)
	made.LogDir, made.OutputLimit = b.logDir, b.r.outputLimit()
	if _, known := b.r.Agents.Find(made.Name); !known && b.cfg.Agent.ImportPath != nil {
		return made, pythonAgent(b.cfg.Agent)
	}
	b.entry, err = b.r.Agents.Resolve(made, stepped)
	return made, err
}

// newAgent builds the agent of a trial in a sandbox.
func (b *agentBuilder) newAgent() (agent.Agent, error) {
	made, err := b.resolve(false)
	if err != nil {
		return nil, err
	}
	if b.entry.Solves {
		made.Solution = func(step string) agent.Solution { return b.solution(made.Env, step) }
	}
	return b.entry.Sandboxed(made)
}

// solution finds the solution of the task or of one of its steps. The agent's own
// variables come before those of the solution.
func (b *agentBuilder) solution(vars []string, step string) agent.Solution {
	script := b.task.SolutionScript(stepNamed(b.task, step))
	s := agent.Solution{
		Dir:    filepath.Dir(script),
		Script: filepath.Base(script),
		Env: func() ([]string, error) {
			own, err := harbor.ResolveEnv(b.task.Config.Solution.Env, b.r.Lookup)
			return append(vars[:len(vars):len(vars)], harbor.Assignments(own)...), err
		},
	}
	if s.Dir != b.task.SolutionDir() {
		s.Step = step
	}
	return s
}

// stepNamed returns a step of the task, nil when there is none of that name.
func stepNamed(task *harbor.Task, name string) *harbor.Step {
	for i := range task.Config.Steps {
		if step := &task.Config.Steps[i]; step.Name == name {
			return step
		}
	}
	return nil
}

// newStepAgent builds the agent of a task that is stepped, and finds how many
// steps it may take, 0 for as many as the task recommends.
func (b *agentBuilder) newStepAgent(source *CubeTask) (cube.Agent, agent.Info, int, error) {
	made, err := b.resolve(true)
	if err != nil {
		return nil, agent.Info{}, 0, err
	}
	maxSteps, err := made.MaxSteps()
	if err != nil {
		return nil, agent.Info{}, 0, err
	}
	if b.entry.Solves && source.Oracle != nil {
		made.Solver = source.Oracle()
	}
	stepper, err := b.entry.Stepped(made)
	info := agent.Info{Name: made.Name}
	if r, ok := stepper.(agent.Reporter); ok && err == nil {
		info = r.Info()
	}
	return stepper, info, maxSteps, err
}
