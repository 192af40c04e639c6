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

// resolveAgent finds the agent that the trial names and what it is made of
// (Harbor agent format, section 1.4).
func (a *attempt) resolveAgent(stepped bool) (agent.Config, error) {
	env, err := harbor.ResolveEnv(a.cfg.Agent.Env.Map, a.r.Lookup)
	if err != nil {
		return agent.Config{}, err
	}
	c := agentConfig(a.cfg.Agent)
	c.Env = harbor.Assignments(env)
	c.LogDir, c.OutputLimit = a.hostDir("agent"), a.r.outputLimit()
	if _, known := a.r.Agents.Find(c.Name); !known && a.cfg.Agent.ImportPath != nil {
		return c, pythonAgent(a.cfg.Agent)
	}
	a.entry, err = a.r.Agents.Resolve(c, stepped)
	return c, err
}

// newAgent builds the agent of a trial in a sandbox.
func (a *attempt) newAgent() (agent.Agent, error) {
	c, err := a.resolveAgent(false)
	if err != nil {
		return nil, err
	}
	if a.entry.Solves {
		c.Solution = func(step string) agent.Solution { return a.solution(c.Env, step) }
	}
	return a.entry.Sandboxed(c)
}

// solution finds the solution of the task or of one of its steps. The agent's own
// variables come before those of the solution.
func (a *attempt) solution(vars []string, step string) agent.Solution {
	script := a.task.SolutionScript(a.stepNamed(step))
	s := agent.Solution{
		Dir:    filepath.Dir(script),
		Script: filepath.Base(script),
		Env: func() ([]string, error) {
			own, err := harbor.ResolveEnv(a.task.Config.Solution.Env, a.r.Lookup)
			return append(vars[:len(vars):len(vars)], harbor.Assignments(own)...), err
		},
	}
	if s.Dir != a.task.SolutionDir() {
		s.Step = step
	}
	return s
}

// stepNamed returns a step of the task, nil when there is none of that name.
func (a *attempt) stepNamed(name string) *harbor.Step {
	for i := range a.task.Config.Steps {
		if step := &a.task.Config.Steps[i]; step.Name == name {
			return step
		}
	}
	return nil
}

// newStepAgent builds the agent of a task that is stepped, and finds how many
// steps it may take, 0 for as many as the task recommends.
func (a *attempt) newStepAgent(source *CubeTask) (cube.Agent, agent.Info, int, error) {
	c, err := a.resolveAgent(true)
	if err != nil {
		return nil, agent.Info{}, 0, err
	}
	maxSteps, err := c.MaxSteps()
	if err != nil {
		return nil, agent.Info{}, 0, err
	}
	if a.entry.Solves && source.Oracle != nil {
		c.Solver = source.Oracle()
	}
	stepper, err := a.entry.Stepped(c)
	info := agent.Info{Name: c.Name}
	if r, ok := stepper.(agent.Reporter); ok && err == nil {
		info = r.Info()
	}
	return stepper, info, maxSteps, err
}
