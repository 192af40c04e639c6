package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/shell"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/sandbox"
)

// sandboxed works in a sandbox with a shell of its own, and so on every task of Harbor.
// What a task that is stepped would end with, an action that fails, is told the model
// here.
type sandboxed struct {
	options options
	model   llm.Model
	now     func() time.Time
}

var _ agent.Agent = (*sandboxed)(nil)

func newSandboxed(c agent.Config, now func() time.Time) (*sandboxed, error) {
	o, model, err := open(c)
	return &sandboxed{options: o, model: model, now: now}, err
}

// Info tells of the agent.
func (s *sandboxed) Info() agent.Info { return agent.Info{Name: agentName, Version: agentVersion} }

// Setup does nothing: there is nothing to install.
func (s *sandboxed) Setup(context.Context, agent.Env) error { return nil }

// Run has a conversation about one instruction. What was used until an error is
// reported with it.
func (s *sandboxed) Run(ctx context.Context, env agent.Env, task agent.Task) (agent.Result, error) {
	box := &userSandbox{Sandbox: env.Sandbox, user: env.User}
	tool, err := newShell(ctx, box)
	if err != nil {
		return agent.Result{}, err
	}
	if len(env.MCPServers) > 0 && env.Warn != nil {
		env.Warn("agent %s does not use MCP servers", agentName)
	}
	p := newPlayer(s.options, s.model, place{env.LogDir, env.OutputLimit, env.Redact}, s.now)
	err = s.play(ctx, p, box, tool, instruction(env, task))
	return p.Report(), err
}

// maxCommandSec is the longest that one command may take, in seconds: that of a Harbor
// task which is stepped.
const maxCommandSec = 900

// maxOutput is what the model is shown of one command's output, in bytes: the beginning
// and, most of it, the end.
const maxOutput = 32 << 10

func newShell(ctx context.Context, sb sandbox.Sandbox) (cube.Tool, error) {
	cfg := shell.NewTerminalToolConfig()
	cfg.WorkingDir, cfg.MaxTimeout, cfg.EnableFileActions, cfg.MaxOutputBytes = "", new(maxCommandSec), true, maxOutput
	tool, err := cfg.Make(ctx, cube.SandboxContainer(sb))
	if err != nil {
		return nil, fmt.Errorf("making the shell: %w", err)
	}
	return tool, nil
}

// userSandbox runs commands as the agent's user. It keeps the error of a sandbox that
// does not work any more, which no model can mend.
type userSandbox struct {
	sandbox.Sandbox
	user   string
	failed int // commands in a row that could not be run
	broken error
}

// maxFailed is how many commands in a row may be impossible to run. A few may be the
// model's doing: too long, or with a zero byte.
const maxFailed = 4

func (u *userSandbox) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	cmd.User = u.user
	status, err := u.Sandbox.Exec(ctx, cmd)
	switch {
	case err == nil:
		u.failed = 0
	case ctx.Err() != nil:
		u.broken = err
	default:
		if u.failed++; u.failed == maxFailed {
			u.broken = err
		}
	}
	return status, err
}

func instruction(env agent.Env, task agent.Task) *cube.Observation {
	text := task.Instruction
	if env.SkillsDir != "" {
		text += "\n\nThere are skills in " + env.SkillsDir + ": each directory there has a SKILL.md, which says what it is for. Read those that fit the task."
	}
	return cube.Observe(cube.Text(text))
}

// play does what the model calls, until it stops or has taken all its turns.
func (s *sandboxed) play(ctx context.Context, p *player, box *userSandbox, tool cube.Tool, obs *cube.Observation) error {
	offered := append(slices.Clip(tool.Actions()), cube.StopAction())
	for range s.options.maxSteps {
		actions, err := p.Act(ctx, obs, offered)
		if err != nil || len(actions) == 0 {
			return err
		}
		obs = &cube.Observation{}
		for _, a := range actions {
			if a.Name == cube.StopName {
				return nil
			}
			result, err := execute(ctx, tool, a)
			if err := errors.Join(err, box.broken); err != nil {
				return err
			}
			obs.Append(result)
		}
	}
	p.end = endMaxSteps
	return nil
}

// execute runs one action. One that fails is an observation that says so.
func execute(ctx context.Context, tool cube.Tool, a cube.Action) (*cube.Observation, error) {
	r, err := tool.Execute(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("calling %s: %w", a.Name, err)
	}
	if r.Err == nil {
		return r.Obs, nil
	}
	content := cube.Text(fmt.Sprintf("The call failed. %s: %s", r.Err.ErrorType, r.Err.ExceptionStr))
	content.ToolCallID = a.ID
	return cube.Observe(content), nil
}
