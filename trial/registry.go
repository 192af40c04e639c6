package trial

import (
	"io"
	"path/filepath"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
)

// CheckAgent reports whether trials can be run with an agent of this
// configuration; cube: their tasks are those of a cube. Every trial would find
// what it finds: it is for before the first one.
//
// Templates in the agent's variables are not resolved, and no trial calls it: job
// directories that other programs made may hold what it refuses.
func CheckAgent(known agent.Registry, cfg jobdir.AgentConfig, cube bool) error {
	if cfg.Name == nil && cfg.ImportPath != nil {
		return pythonAgent(cfg)
	}
	return known.Check(agentConfig(cfg), cube)
}

// CheckModel reports whether the model of an agent that calls one can be opened: its
// provider is known, and there is a key. No call is made. Every trial would find what it
// finds. lookup is as in [Runner]. Models that an agent's commands call count with
// [GatewayOn] alone, and where the agent needs one and its own variables lead to none.
func CheckModel(known agent.Registry, cfg jobdir.AgentConfig, lookup harbor.Lookup, models llm.Opener, mode GatewayMode) error {
	e, ok := known.Find(agentName(cfg))
	passes := e.Gateway && cfg.ModelName != nil && (mode == GatewayOn || e.NeedsModel)
	if !ok || !e.CallsModel && !passes {
		return nil
	}
	env, err := harbor.ResolveEnv(cfg.Env.Map, lookup)
	if err != nil {
		return err
	}
	c := agentConfig(cfg)
	c.Env, c.Models = harbor.Assignments(env), models
	if passes {
		if mode != GatewayOn && findsModel(e, c.Env) {
			return nil
		}
		_, err = c.Route()
		return err
	}
	_, err = c.OpenModel()
	return err
}

// CheckPrices reports whether a budget can be kept of what an agent asks of its model: one
// in dollars needs the prices. What else is wrong with the model is nil here: trials tell.
func CheckPrices(known agent.Registry, cfg jobdir.AgentConfig, lookup harbor.Lookup, models llm.Router, m *llm.Meter) error {
	if cfg.ModelName == nil || !CallsModel(known, cfg, GatewayAuto) {
		return nil
	}
	env, err := harbor.ResolveEnv(cfg.Env.Map, lookup)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	c := agentConfig(cfg)
	c.Env, c.Models = harbor.Assignments(env), models
	route, err := c.Route()
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	return m.CheckPrices(route.Name, route.Info.Prices)
}

// CallsModel reports whether the calls of models of an agent go through this program.
func CallsModel(known agent.Registry, cfg jobdir.AgentConfig, mode GatewayMode) bool {
	e, ok := known.Find(agentName(cfg))
	return ok && (e.CallsModel || e.Gateway && cfg.ModelName != nil && mode != GatewayOff)
}

func pythonAgent(cfg jobdir.AgentConfig) error {
	return exception.Errorf(exception.ValueError, "agent %q is Python code on this machine, which proctor cannot run; "+
		"-a python runs such a class in the sandbox (--ak dir=DIR --ak import=MODULE:CLASS), -a external a program of yours beside it, "+
		"-a acp one that speaks the Agent Client Protocol, and -a command any other (docs/agents.md)", *cfg.ImportPath)
}

// agentConfig has the settings of an agent that the configuration alone gives.
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
	redact func(io.Writer) io.WriteCloser
	models llm.Opener
}

// stepped reports whether the agent works through CUBE's layer.
func (b *agentBuilder) stepped() bool {
	e, ok := b.r.Agents.Find(agentName(b.cfg.Agent))
	return ok && e.Sandboxed == nil
}

// resolve finds the agent that the trial names and what it is made of
// (Harbor agent format, section 1.4).
func (b *agentBuilder) resolve(stepped bool) (agent.Config, agent.Entry, error) {
	env, err := harbor.ResolveEnv(b.cfg.Agent.Env.Map, b.r.Lookup)
	if err != nil {
		return agent.Config{}, agent.Entry{}, err
	}
	made := agentConfig(b.cfg.Agent)
	made.Env = harbor.Assignments(env)
	made.LogDir, made.OutputLimit = b.logDir, b.r.outputLimit()
	made.Redact, made.Models, made.Lookup = b.redact, b.models, b.r.Lookup
	if _, known := b.r.Agents.Find(made.Name); !known && b.cfg.Agent.ImportPath != nil {
		return made, agent.Entry{}, pythonAgent(b.cfg.Agent)
	}
	entry, err := b.r.Agents.Resolve(made, stepped)
	return made, entry, err
}

// newAgent builds the agent of a trial in a sandbox, and tells what it is made of. stepped
// tells that it plays a task that is stepped.
func (b *agentBuilder) newAgent(stepped bool) (built agent.Agent, entry agent.Entry, made agent.Config, err error) {
	made, entry, err = b.resolve(stepped)
	if err != nil {
		return nil, entry, made, err
	}
	if entry.Solves && !stepped {
		made.Solution = func(step string) agent.Solution { return b.solution(made.Env, step) }
	}
	built, err = entry.Sandboxed(made)
	return built, entry, made, err
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

// player is the agent of a task that is stepped.
type player struct {
	cube.Agent
	info     agent.Info
	maxSteps int  // that it may take; 0 for as many as the task recommends
	trusted  bool // its entry's
}

// newPlayer builds the agent of a task that is stepped.
func (b *agentBuilder) newPlayer(source *CubeTask) (player, error) {
	made, entry, err := b.resolve(true)
	if err != nil {
		return player{}, err
	}
	p := player{info: agent.Info{Name: made.Name}, trusted: entry.Trusted}
	if p.maxSteps, err = made.MaxSteps(); err != nil {
		return player{}, err
	}
	if entry.Solves && source.Oracle != nil {
		made.Solver = source.Oracle()
	}
	if p.Agent, err = entry.Stepped(made); err != nil {
		return player{}, err
	}
	if r, ok := p.Agent.(agent.Reporter); ok {
		p.info = r.Info()
	}
	return p, nil
}
