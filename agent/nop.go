package agent

import "context"

// Nop does nothing: what a task gives without any work (section 2.1).
type Nop struct{}

var _ Agent = Nop{}

// Info returns Harbor's name and version of the agent.
func (Nop) Info() Info { return Info{Name: "nop", Version: builtinVersion} }

// Setup does nothing.
func (Nop) Setup(context.Context, Env) error { return nil }

// Run does nothing.
func (Nop) Run(context.Context, Env, Task) (Result, error) { return Result{}, nil }
