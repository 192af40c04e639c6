package oci

import (
	"context"
	"slices"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/entrypoint"
	"github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"
)

// enter runs the image's entrypoint beside the commands, as a container engine
// runs it as a container's first process: with the image's variables, user and
// directory, and with a command that waits. It returns once the entrypoint runs.
// When it ends the sandbox is lost.
func (s *Sandbox) enter(ctx context.Context, base *base) error {
	if len(base.entrypoint) == 0 {
		return nil
	}
	p := entrypoint.Start(ctx, s.client, sandbox.Command{
		Argv: slices.Concat(base.entrypoint, entrypoint.Waiting(runtimes.GuestPath)),
		Env:  append([]string{"HOSTNAME=" + s.hostname}, base.env...),
		User: base.user, Dir: base.workdir,
	}, false)
	_, stays := s.backend.services.Load(base.image)
	waits, err := p.Settle(ctx, stays)
	if err != nil {
		return err
	}
	if !waits {
		s.backend.services.Store(base.image, true)
	}
	p.Watch()
	s.service = p
	return nil
}

// later leaves the entrypoint to whoever calls enter.
func (*Sandbox) later(context.Context, *base) error { return nil }
