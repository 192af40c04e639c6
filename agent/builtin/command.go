package builtin

import (
	"context"
	"strings"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/sandbox"
)

// command is an agent given as shell text, so that any command-line agent can
// be run. Install runs as root in the set-up phase, Run as the agent's user.
//
// Run finds its task where [agent.Env.Tell] puts it, and both what else the agent is given
// where [agent.Env.Equipped] says.
//
// The output of the two is kept as install.txt and command.txt in the agent's
// log directory. A non-zero exit of either is an [*agent.ExitError].
type command struct {
	Install, Command string
	// Env is set for both, KEY=VALUE.
	Env   []string
	Model string
	// Version is recorded with the results; empty for unknown.
	Version string
}

var (
	_ agent.Agent       = (*command)(nil)
	_ agent.Provisioner = (*command)(nil)
)

// commandOutput has what the command printed.
const commandOutput = "command.txt"

func commandEntry() agent.Entry {
	return agent.Entry{
		Name:    "command",
		Summary: "runs a shell command of yours",
		Output:  commandOutput,
		Gateway: true, UsesTools: true,
		Settings: append([]agent.Setting{
			{Name: "run", Summary: "the command, run by `bash -c` as the task's agent user, in the task's working directory", Text: true, Required: true},
			{Name: "install", Summary: "run before it, as root, within the agent's set-up time (360 seconds unless changed)", Text: true},
			agent.ShareSetting(),
			{Name: "version", Summary: "recorded with the results", Text: true},
		}, agent.GatewaySettings()...),
		Sandboxed: func(c agent.Config) (agent.Agent, error) {
			return &command{
				Install: c.Text("install"), Command: c.Text("run"), Version: c.Text("version"),
				Env: c.Env, Model: c.Model,
			}, nil
		},
	}
}

// Info returns "command" and the configured version.
func (c *command) Info() agent.Info { return agent.Info{Name: "command", Version: c.Version} }

// Setup does what Provision does.
func (c *command) Setup(ctx context.Context, env agent.Env) error {
	if env.Provisioned {
		return nil
	}
	return c.Provision(ctx, env)
}

// Provision puts the list of MCP servers in place and runs the install text as
// root, as far as there are any.
func (c *command) Provision(ctx context.Context, env agent.Env) error {
	if err := env.UploadServers(ctx); err != nil {
		return err
	}
	if strings.TrimSpace(c.Install) == "" {
		return nil
	}
	return env.Check(ctx, "install.txt", sandbox.Command{Shell: c.Install, Env: env.Equipped(c.Env), User: "root"})
}

// Run puts the task in place and runs the command.
func (c *command) Run(ctx context.Context, env agent.Env, task agent.Task) (agent.Result, error) {
	told, err := env.Tell(ctx, task, c.Model)
	if err != nil {
		return agent.Result{}, err
	}
	vars := append(env.Equipped(c.Env), told...)
	return agent.Result{}, env.Check(ctx, commandOutput, sandbox.Command{Shell: c.Command, Env: vars, User: env.User})
}
