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
// gVisor keeps no signal from it, and a machine that is short of memory may kill it.
func (s *Sandbox) lost(err error) error {
	if !errors.Is(err, guest.ErrGone) {
		return err
	}
	reason := "its supervisor was ended from outside the sandbox, or for want of memory"
	if s.backend.runtime.OwnKernel() {
		if signal := s.process.Signal(); signal != 0 {
			reason = fmt.Sprintf("something in it ended its supervisor (signal %d)", signal)
		}
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
