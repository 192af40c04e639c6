// Package backend wraps a sandbox backend so that every command is reported. A
// backend of one's own begins in the same way: with a type that passes
// sandboxtest.
package backend

import (
	"context"
	"fmt"
	"time"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
)

// Command is a command that has ended.
type Command struct {
	Sandbox string // the name in its Spec
	Command sandbox.Command
	Status  sandbox.ExitStatus
	Err     error
	Took    time.Duration
}

// Reported is a backend that reports commands.
type Reported struct {
	sandbox.Backend
	// Report is called for every command, by the goroutine that ran it.
	Report func(Command)
}

// Name is what -e chooses the backend by.
func (*Reported) Name() string { return "reported" }

// Entry makes the backend one that a program can choose, on top of another:
//
//	sandboxes.Attach(program, append(sandboxes.Builtin(), backend.Entry("host", report)))
func Entry(below string, report func(Command)) sandboxes.Entry {
	return sandboxes.Entry{
		Name: "reported", Summary: below + ", and each command is reported",
		New: func(ctx context.Context, o sandboxes.Options) (sandbox.Backend, func() error, error) {
			b, release, err := sandboxes.New(ctx, below, o)
			if err != nil {
				return nil, nil, err
			}
			return &Reported{Backend: b, Report: report}, release, nil
		},
	}
}

// Create creates a sandbox of the backend below.
func (b *Reported) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	sb, err := b.Backend.Create(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("creating %s: %w", spec.Name, err)
	}
	return &reported{Sandbox: sb, name: spec.Name, report: b.Report}, nil
}

// Collect removes what dead processes left, where the backend below can.
func (b *Reported) Collect(ctx context.Context, keep func(procid.ID) bool) ([]string, error) {
	c, ok := b.Backend.(sandbox.Collector)
	if !ok {
		return nil, nil
	}
	return c.Collect(ctx, keep)
}

type reported struct {
	sandbox.Sandbox
	name   string
	report func(Command)
}

// Unwrap lets sandbox.As find the abilities of the sandbox below.
func (s *reported) Unwrap() sandbox.Sandbox { return s.Sandbox }

func (s *reported) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	start := time.Now()
	status, err := s.Sandbox.Exec(ctx, cmd)
	s.report(Command{Sandbox: s.name, Command: cmd, Status: status, Err: err, Took: time.Since(start)})
	return status, err
}
