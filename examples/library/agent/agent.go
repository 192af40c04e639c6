// Package agent adds two agents to those that come with proctor: "note" works in
// a sandbox by itself, "single" plays tasks that are stepped.
package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// Registry returns proctor's agents and the two of this package. Give it to the
// runner of a job as trial.Runner.Agents.
func Registry() agent.Registry {
	return append(agents.All(),
		agent.Entry{
			Name:     "note",
			Summary:  "writes the instruction into a file",
			Settings: []agent.Setting{{Name: "path", Summary: "the file in the sandbox", Text: true, Required: true}},
			Sandboxed: func(c agent.Config) (agent.Agent, error) {
				return &note{path: c.Text("path")}, nil
			},
		},
		agent.Entry{
			Name:     "single",
			Summary:  "runs one command and stops",
			Settings: []agent.Setting{{Name: "command", Summary: "the command", Text: true, Required: true}},
			Stepped: func(c agent.Config) (cube.Agent, error) {
				return &single{command: c.Text("command")}, nil
			},
		},
	)
}

// note works in a sandbox. Setup comes before the agent's time runs.
type note struct{ path string }

func (*note) Info() agent.Info { return agent.Info{Name: "note", Version: "1.0.0"} }

func (*note) Setup(ctx context.Context, env agent.Env) error {
	status, err := env.Sandbox.Exec(ctx, sandbox.Command{Shell: "command -v tee", User: "root"})
	if err != nil {
		return fmt.Errorf("looking for tee: %w", err)
	}
	if status.Code != 0 {
		return errors.New("the image has no tee")
	}
	return nil
}

func (a *note) Run(ctx context.Context, env agent.Env, task agent.Task) (agent.Result, error) {
	if err := sandbox.UploadBytes(ctx, env.Sandbox, []byte(task.Instruction), a.path, 0o644); err != nil {
		// The name is what retry rules and reason codes match on.
		return agent.Result{}, exception.Errorf(exception.RuntimeError, "writing the note: %w", err)
	}
	metadata := &value.Object{}
	metadata.Set("characters", value.NewInt(int64(len(task.Instruction))))
	tokens := int64(0)
	return agent.Result{OutputTokens: &tokens, Metadata: metadata}, nil
}

// single plays a task: it sees an observation and answers with actions.
type single struct {
	command string
	done    bool
}

func (a *single) Act(_ context.Context, _ *cube.Observation, actions []cube.ActionSchema) ([]cube.Action, error) {
	if a.done {
		return nil, nil // no action: the agent stops
	}
	a.done = true
	for _, s := range actions {
		if s.Name == "bash" {
			return []cube.Action{cube.NewAction("bash", "command", a.command)}, nil
		}
	}
	return nil, errors.New("the task has no shell")
}
