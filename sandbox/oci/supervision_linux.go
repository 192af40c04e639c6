package oci

import (
	"context"

	"github.com/proctor-run/proctor/sandbox"
)

var (
	_ sandbox.ProcessLister = (*Sandbox)(nil)
	_ sandbox.Supervised    = (*Sandbox)(nil)
)

// Processes lists what runs in the sandbox, as its first process sees it.
func (s *Sandbox) Processes(ctx context.Context) ([]sandbox.Process, error) {
	return s.client.Processes(ctx)
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
