package oci

import (
	"context"
	"fmt"
	"net"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
	"github.com/proctor-run/proctor/sandbox/guest"
	"github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"
)

var (
	_ sandbox.NetworkSwitcher = (*Sandbox)(nil)
	_ egress.Listener         = (*Sandbox)(nil)
	_ egress.Listener         = (*renewable)(nil)
)

// public reports whether a sandbox reaches everything at first.
func public(n sandbox.Network) bool { return n.Mode == "" || n.Mode == sandbox.NetworkPublic }

// openGate starts the egress proxy of a sandbox that needs it.
func (s *Sandbox) openGate(ctx context.Context, n sandbox.Network) (err error) {
	if !s.backend.proxied(n) {
		return nil
	}
	s.wayOut = public(n) && !n.Switchable
	s.gate, err = egress.Open(ctx, egress.Options{
		Exec: s.client.Exec, Relay: relay(),
		Policy: egress.Policy{Mode: n.Mode, Hosts: n.Hosts}, Log: n.Log, Upstream: s.backend.opts.Egress, Now: s.backend.opts.Now,
	})
	return err
}

// relay is the guest program as a relay.
func relay() []string { return []string{runtimes.GuestPath, guest.RelayMode} }

// Listen lets programs in the sandbox reach this program, see egress.Listener.
func (s *Sandbox) Listen(ctx context.Context) (net.Listener, error) {
	l, err := s.inlets.Listen(ctx, egress.ListenOptions{Exec: s.client.Exec, Relay: relay()})
	if err != nil {
		return nil, fmt.Errorf("listening in sandbox %q: %w", s.id, err)
	}
	return l, nil
}

// shutRelays ends all connections through the egress proxy and to listeners.
// awaitRelays then returns when nothing of them is left.
func (s *Sandbox) shutRelays() {
	if s.gate != nil {
		s.gate.Shut()
	}
	s.inlets.Shut()
}

func (s *Sandbox) awaitRelays(ctx context.Context) error {
	if s.gate != nil {
		if err := s.gate.Wait(ctx); err != nil {
			return err
		}
	}
	return s.inlets.Wait(ctx)
}

// SetNetwork changes what a sandbox can reach that was created with
// Network.Switchable. Where sandboxes have no network of their own, public means
// everything that the egress proxy reaches.
func (s *Sandbox) SetNetwork(ctx context.Context, mode sandbox.NetworkMode, hosts []string) error {
	if s.gate == nil || s.wayOut {
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
