package agent

import "context"

// nop does nothing: what a task gives without any work (section 2.1).
type nop struct{}

var _ Agent = nop{}

// Info returns Harbor's name and version of the agent.
func (nop) Info() Info { return Info{Name: "nop", Version: builtinVersion} }

// Setup does nothing.
func (nop) Setup(context.Context, Env) error { return nil }

// Run does nothing.
func (nop) Run(context.Context, Env, Task) (Result, error) { return Result{}, nil }
