package job

import (
	"context"

	"github.com/proctor-run/proctor/sandbox"
)

// cubeBackend is the backend that a cube sees, whatever its config wraps around it.
// A sandbox that is made for a trial is one of the trial's own backend, so that it
// bears the trial's labels, is in the journal and is gone when the trial is;
// what a benchmark's setup makes is the job's.
type cubeBackend struct{ sandbox.Backend }

// trialBackend is the key of the backend of a trial in contexts.
type trialBackend struct{}

// withBackend returns a context in which a cubeBackend makes sandboxes of b.
func withBackend(ctx context.Context, b sandbox.Backend) context.Context {
	return context.WithValue(ctx, trialBackend{}, b)
}

// Create makes a sandbox of the backend of the trial that the context belongs to.
func (c cubeBackend) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if b, ok := ctx.Value(trialBackend{}).(sandbox.Backend); ok {
		return b.Create(ctx, spec)
	}
	return c.Backend.Create(ctx, spec)
}
