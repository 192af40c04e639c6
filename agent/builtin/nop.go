package builtin

import (
	"context"

	"github.com/proctor-run/proctor/agent"
)

// nop does nothing: what a task gives without any work (section 2.1).
type nop struct{}

var _ agent.Agent = nop{}

// Info returns Harbor's name and version of the agent.
func (nop) Info() agent.Info { return agent.Info{Name: "nop", Version: builtinVersion} }

// Setup does nothing.
func (nop) Setup(context.Context, agent.Env) error { return nil }

// Run does nothing.
func (nop) Run(context.Context, agent.Env, agent.Task) (agent.Result, error) {
	return agent.Result{}, nil
}
