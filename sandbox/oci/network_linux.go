package oci

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
	"github.com/proctor-run/proctor/sandbox/guest"
	"github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"
)

var _ sandbox.NetworkSwitcher = (*Sandbox)(nil)

// public reports whether a sandbox reaches everything at first.
func public(n sandbox.Network) bool { return n.Mode == "" || n.Mode == sandbox.NetworkPublic }

// proxied reports whether a sandbox has an egress proxy. A network namespace cannot
// be changed while processes are in it: where a policy will be switched there is
// a proxy from the first, and the sandbox's own network is opened and shut.
func proxied(n sandbox.Network) bool { return n.Switchable || n.Mode == sandbox.NetworkAllowlist }

// openGate starts the egress proxy of a sandbox that needs it.
func (s *Sandbox) openGate(ctx context.Context, n sandbox.Network) (err error) {
	if !proxied(n) {
		return nil
	}
	s.gate, err = egress.Open(ctx, egress.Options{
		Exec: s.client.Exec, Relay: []string{runtimes.GuestPath, guest.RelayMode},
		Policy: egress.Policy{Mode: n.Mode, Hosts: n.Hosts}, Log: n.Log, Upstream: s.backend.opts.Egress, Now: s.backend.opts.Now,
	})
	return err
}

// SetNetwork changes what a sandbox can reach that was created with
// Network.Switchable. Where sandboxes have no network of their own, public means
// everything that the egress proxy reaches.
func (s *Sandbox) SetNetwork(ctx context.Context, mode sandbox.NetworkMode, hosts []string) error {
	if s.gate == nil {
		return fmt.Errorf("switching the network of sandbox %q, which was not created for it: %w", s.id, sandbox.ErrUnsupported)
	}
	s.mu.Lock()
	gone := s.gone
	s.mu.Unlock()
	if gone {
		return sandbox.ErrDestroyed
	}
	open := public(sandbox.Network{Mode: mode})
	if s.net != nil && !open {
		s.net.SetOpen(false)
	}
	if err := s.gate.SetPolicy(ctx, egress.Policy{Mode: mode, Hosts: hosts}); err != nil {
		return fmt.Errorf("switching the network of sandbox %q: %w", s.id, err)
	}
	if s.net != nil && open {
		s.net.SetOpen(true)
	}
	return nil
}
