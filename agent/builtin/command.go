package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/sandbox"
)

// command is an agent given as shell text, so that any command-line agent can
// be run. Install runs as root in the set-up phase, Run as the agent's user.
//
// Run finds its task in files and in variables:
//
//	PROCTOR_INSTRUCTION       the instruction; unset when longer than 96 KiB
//	PROCTOR_INSTRUCTION_FILE  a file with it
//	PROCTOR_DEADLINE          when the run is ended, in RFC 3339; empty for never
//	PROCTOR_DEADLINE_FILE     a file with it
//	PROCTOR_MODEL             the model name as configured; empty for none
//
// Both texts find what else the agent is given in:
//
//	PROCTOR_MCP_CONFIG        a file with the MCP servers, see [agent.AppendMCPConfig]; unset when there are none
//	PROCTOR_SKILLS_DIR        a directory with a directory for each skill; unset when there are none
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

var _ agent.Agent = (*command)(nil)

const (
	taskDir         = "/proctor"
	instructionFile = taskDir + "/instruction.md"
	deadlineFile    = taskDir + "/deadline"
	mcpFile         = taskDir + "/mcp.json"

	// A single environment variable may hold 128 KiB on Linux, its name and
	// the terminating zero included.
	instructionInEnvLimit = 96 << 10
)

// commandOutput has what the command printed.
const commandOutput = "command.txt"

func commandEntry() agent.Entry {
	return agent.Entry{
		Name:    "command",
		Summary: "runs a shell command of yours",
		Output:  commandOutput,
		Gateway: true,
		Settings: append([]agent.Setting{
			{Name: "run", Summary: "the command, run by `bash -c` as the task's agent user, in the task's working directory", Text: true, Required: true},
			{Name: "install", Summary: "run before it, as root, within the agent's set-up time (360 seconds unless changed)", Text: true},
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

// Setup puts the list of MCP servers in place and runs the install text as
// root, as far as there are any.
func (c *command) Setup(ctx context.Context, env agent.Env) error {
	if err := uploadServers(ctx, env); err != nil {
		return err
	}
	if strings.TrimSpace(c.Install) == "" {
		return nil
	}
	return env.Check(ctx, "install.txt", sandbox.Command{Shell: c.Install, Env: withEquipment(c.Env, env), User: "root"})
}

// uploadServers puts the list of MCP servers in place, if there are any.
func uploadServers(ctx context.Context, env agent.Env) error {
	if len(env.MCPServers) == 0 {
		return nil
	}
	return uploadText(ctx, env, mcpFile, string(agent.AppendMCPConfig(nil, env.MCPServers)))
}

// uploadText writes a file that everybody in the sandbox can read.
func uploadText(ctx context.Context, env agent.Env, path, text string) error {
	if err := sandbox.UploadBytes(ctx, env.Sandbox, []byte(text), path, 0o644); err != nil {
		return fmt.Errorf("uploading %q: %w", path, err)
	}
	return nil
}

// withEquipment are the variables of an agent's commands, with those that tell of MCP
// servers and skills.
func withEquipment(own []string, env agent.Env) []string {
	vars := env.Variables(own)
	if len(env.MCPServers) > 0 {
		vars = append(vars, "PROCTOR_MCP_CONFIG="+mcpFile)
	}
	if env.SkillsDir != "" {
		vars = append(vars, "PROCTOR_SKILLS_DIR="+env.SkillsDir)
	}
	return vars
}

// Run puts the task in place and runs the command.
func (c *command) Run(ctx context.Context, env agent.Env, task agent.Task) (agent.Result, error) {
	deadline := ""
	if !task.Deadline.IsZero() {
		deadline = task.Deadline.UTC().Format(time.RFC3339)
	}
	for _, f := range []struct{ path, text string }{
		{instructionFile, task.Instruction}, {deadlineFile, deadline},
	} {
		if err := uploadText(ctx, env, f.path, f.text); err != nil {
			return agent.Result{}, err
		}
	}
	vars := append(withEquipment(c.Env, env),
		"PROCTOR_INSTRUCTION_FILE="+instructionFile,
		"PROCTOR_DEADLINE="+deadline,
		"PROCTOR_DEADLINE_FILE="+deadlineFile,
		"PROCTOR_MODEL="+c.Model,
	)
	if len(task.Instruction) <= instructionInEnvLimit && !strings.ContainsRune(task.Instruction, 0) {
		vars = append(vars, "PROCTOR_INSTRUCTION="+task.Instruction)
	}
	return agent.Result{}, env.Check(ctx, commandOutput, sandbox.Command{Shell: c.Command, Env: vars, User: env.User})
}
