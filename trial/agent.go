package trial

import (
	"context"
	"errors"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

func (a *attempt) agentEnv(step *harbor.Step) agent.Env {
	env := agent.Env{
		Sandbox: a.sandbox(), User: a.env.AgentUser(step),
		LogDir: a.hostDir("agent"), OutputLimit: a.r.outputLimit(), Redact: a.veil.writer,
		MCPServers: a.equipment.servers, SkillsDir: a.equipment.skillsDir,
		Warn: a.warn, Model: a.modelAccess(), Installed: a.known.toAgent(), Lookup: a.r.Lookup,
	}
	if a.r.Layers != nil {
		env.Downloads = a.r.Layers.Downloads()
	}
	if a.gateway != nil {
		env.Vars = a.gateway.vars
	}
	return env
}

// setUpAgent prepares the agent within its set-up limit.
func (a *attempt) setUpAgent(ctx context.Context) error {
	a.enter(phaseAgentSetup)
	turn := a.joinSetups(ctx)
	defer turn.end()
	limit := a.limits.agentSetup()
	var env agent.Env
	err := a.timed(ctx, a.whole(), limit,
		limit.Passed(exception.AgentSetupTimeoutError, "Agent setup"),
		func(ctx context.Context) error {
			provisioned, err := a.provision(ctx, turn)
			if err != nil {
				return err
			}
			env = a.agentEnv(nil)
			env.Provisioned = provisioned
			return a.agent.Setup(ctx, env)
		})
	a.res.AgentInfo = agentInfo(a.cfg.Agent, a.agent.Info())
	if err == nil && env.Installed != nil && env.Installed.Used {
		if noteErr := a.known.store.Works(a.known.layer, a.known.image); noteErr != nil {
			a.log.printf("Warning: noting that the agent's program runs in this image: %v", noteErr)
		}
	}
	return err
}

// runAgent lets the agent work on a stage under the policy of its phase.
func (a *attempt) runAgent(ctx context.Context, s *stage) error {
	plan := a.net.plan(s.step)
	return a.withNetwork(ctx, a.sandbox(), plan.AgentBaseline, plan.AgentPhase, func() error {
		return a.readLogs(ctx, s, a.execute(ctx, s, plan.AgentPhase))
	})
}

// execute lets the agent work on a stage within its limit. When the limit passes, or the
// gateway ends the agent, nothing that the agent started is left when execute returns, or
// the error says that this could not be proven and the trial must end.
func (a *attempt) execute(ctx context.Context, s *stage, network harbor.Network) error {
	a.enter(phaseAgent)
	s.setAgent(&jobdir.AgentResult{})
	marks, err := markAll(ctx, a.sandbox())
	if err != nil {
		return err
	}
	limit := a.limits.agent(s.step)
	task := agent.Task{Instruction: s.instruction}
	if s.step != nil {
		task.Step = s.step.Name
	}
	if d := limit.Duration(); d >= 0 {
		task.Deadline = a.r.Now().Add(d)
	}
	passed := limit.Passed(exception.AgentTimeoutError, "Agent execution")
	err = a.timed(ctx, s.results, limit, passed, func(ctx context.Context) error {
		return a.working(ctx, s, network, func(ctx context.Context) (agent.Result, error) { return a.agent.Run(ctx, a.agentEnv(s.step), task) })
	})
	return a.end(ctx, s, marks, err, passed)
}

// working lets the agent work, and its commands call their model meanwhile.
func (a *attempt) working(ctx context.Context, s *stage, network harbor.Network, work func(context.Context) (agent.Result, error)) error {
	if g := a.gateway; g != nil {
		run, before := work, g.Answered()
		work = func(ctx context.Context) (agent.Result, error) {
			result, err := g.during(ctx, network, run)
			s.answered = g.Answered() > before
			return result, err
		}
	}
	result, err := work(ctx)
	s.setAgent(newAgentResult(result))
	return a.orNotBegun(err)
}

// end ends what the agent left running where err says that its time has passed, or that the
// gateway has ended it, and returns why the agent's work is over, nil for no error.
func (a *attempt) end(ctx context.Context, s *stage, marks []marked, err, passed error) error {
	if stopped, ok := errors.AsType[*stoppedError](err); ok {
		return a.killAgent(ctx, s, marks, "model", stopped.why)
	}
	if !errors.Is(err, passed) {
		return err
	}
	return a.killAgent(ctx, s, marks, "deadline", passed)
}

// killAgent ends what the agent left running when it was ended, in all sandboxes. The first
// that cannot be proven is noted.
func (a *attempt) killAgent(ctx context.Context, s *stage, marks []marked, reason string, why error) error {
	s.killed = true
	var failed error
	for _, m := range marks {
		note, err := killTree(context.WithoutCancel(ctx), m.sb, m.mark, reason)
		if failed == nil {
			a.notes.AgentKilled, failed = note, err
		}
	}
	if failed != nil {
		a.note(why)
		return failed
	}
	return why
}

// marked is a sandbox at a time.
type marked struct {
	sb   sandbox.Sandbox
	mark sandbox.Mark
}

// markAll marks sandboxes, of which some may be nil.
func markAll(ctx context.Context, sandboxes ...sandbox.Sandbox) ([]marked, error) {
	var all []marked
	for _, sb := range sandboxes {
		if sb == nil {
			continue
		}
		mark, err := sb.Mark(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, marked{sb, mark})
	}
	return all, nil
}

// unprovenError ends a trial whose agent may still be running.
type unprovenError struct{ err error }

// ErrorType returns AgentNotGoneError.
func (e *unprovenError) ErrorType() string { return exception.AgentNotGoneError }

func (e *unprovenError) Error() string {
	return "the agent may still be running, so its work is not verified: " + e.err.Error()
}

func (e *unprovenError) Unwrap() error { return e.err }

// agentGrace is how long processes of an agent have between SIGTERM and
// SIGKILL after its deadline.
const agentGrace = 2 * time.Second

// verifiedAnyway reports whether the verifier runs in spite of an error of the
// agent.
func verifiedAnyway(err error) bool {
	typ, _ := describe(err)
	return typ == exception.AgentTimeoutError || typ == exception.NonZeroAgentExitCodeError || typ == exception.BudgetExceededError
}

// survive records an error of the agent in spite of which the verifier runs. Any
// other is returned, and ends the trial.
func (a *attempt) survive(err error) error {
	if err == nil || !verifiedAnyway(err) {
		return err
	}
	a.record(err)
	return nil
}

func newAgentResult(r agent.Result) *jobdir.AgentResult {
	return &jobdir.AgentResult{
		NInputTokens:  intPtr(r.InputTokens),
		NCacheTokens:  intPtr(r.CacheTokens),
		NOutputTokens: intPtr(r.OutputTokens),
		CostUSD:       r.CostUSD,

		RolloutDetails: r.Rollouts,
		Metadata:       r.Metadata,
	}
}

func intPtr(n *int64) *value.Int {
	if n == nil {
		return nil
	}
	return new(value.NewInt(*n))
}
