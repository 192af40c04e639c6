package terminus

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/llm"
)

// surroundings are what the agent takes from this machine. The zero value is the
// machine's own.
type surroundings struct {
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration) error
	newID func() string
}

// terminus is the agent. It is used by one trial.
type terminus struct {
	settings
	model llm.Model
	// modelName is the one that was configured.
	modelName string
	vars      []string
	around    surroundings
	// have are the programs that Provision has left in the sandbox; nil where another trial's did.
	have *tools
	// screen is remembered from one step of a task to the next, as the terminal is.
	screen screenState
	// interrupted: the context of the last run ended, and everything that ran in the
	// sandbox may have been ended with it.
	interrupted bool
}

var (
	_ agent.Agent       = (*terminus)(nil)
	_ agent.Provisioner = (*terminus)(nil)
)

func newAgent(c agent.Config, around surroundings) (agent.Agent, error) {
	s, err := readSettings(c)
	if err != nil {
		return nil, err
	}
	model, err := s.modelConfig(c).OpenModel()
	if err != nil {
		return nil, err
	}
	around.now = clock.Or(around.now)
	if around.sleep == nil {
		around.sleep = clock.Sleep
	}
	if around.newID == nil {
		around.newID = uuid.NewString
	}
	return &terminus{
		settings: s, model: model, modelName: c.Model, vars: withoutKeys(c), around: around,
	}, nil
}

// withoutKeys are the agent's variables for the terminal: without the key of the model,
// which the sandbox has no use for.
func withoutKeys(c agent.Config) []string {
	keys := llm.KeyVariables(c.Model)
	return slices.DeleteFunc(slices.Clone(c.Env), func(assignment string) bool {
		name, _, _ := strings.Cut(assignment, "=")
		return slices.Contains(keys, name)
	})
}

// Info returns the name and version under which the reference knows the agent.
func (t *terminus) Info() agent.Info { return agent.Info{Name: agentName, Version: agentVersion} }

// Setup sees to tmux and opens the terminal.
func (t *terminus) Setup(ctx context.Context, env agent.Env) error {
	if t.limited {
		warn(env, "the agent may give at most %d answers in a run: it may be stopped before it is done", t.maxTurns)
	}
	have, err := t.tools(ctx, env)
	if err != nil {
		return err
	}
	if t.record != recordNever && !have.asciinema {
		warn(env, "the terminal is not recorded: there is no asciinema in the sandbox (record_terminal_session=false says that none is wanted)")
	}
	terminal := t.session(env)
	if err := terminal.start(ctx); err != nil {
		return err
	}
	if t.record != recordNever && have.asciinema {
		return terminal.startRecording(ctx)
	}
	return nil
}

// Provision installs tmux, and what records it, where they are missing.
func (t *terminus) Provision(ctx context.Context, env agent.Env) error {
	have, err := t.installer(env).prepare(ctx, t.record)
	t.have = &have
	return err
}

// tools are the programs in the sandbox, which are installed where that was not done before.
func (t *terminus) tools(ctx context.Context, env agent.Env) (tools, error) {
	switch {
	case !env.Provisioned:
		err := t.Provision(ctx, env)
		return *t.have, err
	case t.have != nil:
		return *t.have, nil
	}
	i := t.installer(env)
	have, err := i.look(ctx)
	if err == nil && !have.tmux {
		err = i.noTmux(have)
	}
	return have, err
}

func (t *terminus) installer(env agent.Env) *installer {
	return &installer{env: env, vars: t.vars, now: t.around.now}
}

func (t *terminus) session(env agent.Env) *session {
	return &session{env: env, vars: t.vars, width: t.width, height: t.height, now: t.around.now, sleep: t.around.sleep}
}

// Run works on one instruction. Whatever ends it, the trajectory is written, and the
// result has what was used.
func (t *terminus) Run(ctx context.Context, env agent.Env, task agent.Task) (agent.Result, error) {
	r := &run{
		terminus: t, env: env, terminal: t.session(env), instruction: task.Instruction,
		limit: t.model.Info().InputLimit, base: t.givenSession,
	}
	if r.limit <= 0 {
		r.limit = unknownInputLimit
	}
	if r.base == "" {
		r.base = t.around.newID()
	}
	r.sessionID = r.base
	err := r.work(ctx)
	if t.interrupted = err != nil && ctx.Err() != nil; t.interrupted {
		err = context.Cause(ctx)
	}
	return r.finish(), err
}

func warn(env agent.Env, format string, args ...any) {
	if env.Warn != nil {
		env.Warn(format, args...)
	}
}
