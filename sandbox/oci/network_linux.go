package oci

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
	"github.com/proctor-run/proctor/sandbox/guest"
)

var _ sandbox.NetworkSwitcher = (*Sandbox)(nil)

// proxied reports whether a sandbox reaches the network through the egress proxy
// alone. A network namespace cannot be changed while processes are in it, so
// that a policy that will be switched is the proxy's, whatever it is first.
func proxied(n sandbox.Network) bool { return n.Switchable || n.Mode == sandbox.NetworkAllowlist }

// isolated reports whether a sandbox has a network namespace of its own, with a
// loopback device and nothing else.
func isolated(n sandbox.Network) bool { return proxied(n) || n.Mode == sandbox.NetworkNone }

// openGate starts the egress proxy of a sandbox that needs it.
func (s *Sandbox) openGate(ctx context.Context, n sandbox.Network) (err error) {
	if !proxied(n) {
		return nil
	}
	s.gate, err = egress.Open(ctx, egress.Options{
		Exec: s.client.Exec, Relay: []string{guestPath, guest.RelayMode},
		Policy: egress.Policy{Mode: n.Mode, Hosts: n.Hosts}, Log: n.Log, Upstream: s.backend.opts.Egress, Now: s.backend.opts.Now,
	})
	return err
}

// SetNetwork changes what a sandbox can reach that was created with
// Network.Switchable. Public then means everything that the egress proxy
// reaches.
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
	if err := s.gate.SetPolicy(ctx, egress.Policy{Mode: mode, Hosts: hosts}); err != nil {
		return fmt.Errorf("switching the network of sandbox %q: %w", s.id, err)
	}
	return nil
}
