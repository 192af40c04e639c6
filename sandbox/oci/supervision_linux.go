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
