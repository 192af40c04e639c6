package oci

import (
	"context"
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/guest"
)

var (
	_ sandbox.ProcessLister = (*Sandbox)(nil)
	_ sandbox.Supervised    = (*Sandbox)(nil)
)

// Processes lists what runs in the sandbox, as its first process sees it.
func (s *Sandbox) Processes(ctx context.Context) ([]sandbox.Process, error) {
	procs, err := s.client.Processes(ctx)
	return procs, s.lost(err)
}

// lost types the error of a call whose supervisor has ended, which nobody here ended:
// gVisor keeps no signal from it, and ends with all that is in it when the memory of its
// group, which knows of no process of the sandbox, is full.
func (s *Sandbox) lost(err error) error {
	if !errors.Is(err, guest.ErrGone) {
		return err
	}
	reason := "its supervisor was ended from outside the sandbox, or for want of memory"
	switch {
	case !s.backend.runtime.OwnKernel():
	case s.backend.groups.KilledForMemory(s.id):
		reason = "gVisor and what is in it ran out of memory"
	default:
		reason = "its supervisor was ended, by something in the sandbox or by somebody on this machine"
	}
	return fmt.Errorf("%w: %w", &sandbox.LostError{Reason: reason}, err)
}

// Supervision is sandbox.SupervisionGuest.
func (s *Sandbox) Supervision() string { return sandbox.SupervisionGuest }

var (
	_ sandbox.ProcessLister = (*renewable)(nil)
	_ sandbox.Supervised    = (*renewable)(nil)
	_ sandbox.Imaged        = (*renewable)(nil)
)

// Processes lists what runs in the sandbox now.
func (r *renewable) Processes(ctx context.Context) ([]sandbox.Process, error) {
	s, err := r.running()
	if err != nil {
		return nil, err
	}
	return s.Processes(ctx)
}

// Supervision is sandbox.SupervisionGuest.
func (r *renewable) Supervision() string { return sandbox.SupervisionGuest }

// ImageDigest is the id of the image that the sandbox was made of; empty on the host's
// own files.
func (r *renewable) ImageDigest() string { return r.base.image }
