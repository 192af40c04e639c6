package docker

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
	"github.com/proctor-run/proctor/sandbox/guest"
)

var (
	_ sandbox.NetworkSwitcher = (*Container)(nil)
	_ egress.Listener         = (*Container)(nil)
)

// containerNetwork is what a container can reach, where that is changed or goes through
// the egress proxy.
type containerNetwork struct {
	b     *Backend
	names []string // networks of mode public, where that can come
	opts  sandbox.Network
	gate  *egress.Gate // nil for none

	switching chan struct{} // holds one SetNetwork

	mu   sync.Mutex
	mode sandbox.NetworkMode // guarded by mu
}

// proxied reports whether a container may need the egress proxy, whose relay
// the supervisor runs.
func proxied(n sandbox.Network) bool { return n.Switchable || n.Mode == sandbox.NetworkAllowlist }

// public reports whether a mode is public, which the zero value is too.
func public(m sandbox.NetworkMode) bool { return m == "" || m == sandbox.NetworkPublic }

// prepareNetwork detaches a container that has been created and not started
// from the network that it may get later.
func (b *Backend) prepareNetwork(ctx context.Context, id string, n sandbox.Network) (*containerNetwork, error) {
	made := &containerNetwork{
		b: b, opts: n, mode: n.Mode, switching: make(chan struct{}, 1),
	}
	if !n.Switchable {
		return made, nil
	}
	var err error
	if made.names, err = networksOf(ctx, b.api, id); err != nil {
		return nil, err
	}
	if public(n.Mode) {
		return made, nil
	}
	return made, detach(ctx, b.api, id)
}

func networksOf(ctx context.Context, api *client.Client, id string) ([]string, error) {
	r, err := api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking for the networks: %w", err)
	}
	if r.Container.NetworkSettings == nil {
		return nil, nil
	}
	return slices.Sorted(maps.Keys(r.Container.NetworkSettings.Networks)), nil
}

// detach takes a container off all networks, and returns when it is proven.
func detach(ctx context.Context, api *client.Client, id string) error {
	names, err := networksOf(ctx, api, id)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := api.NetworkDisconnect(ctx, name, client.NetworkDisconnectOptions{Container: id}); err != nil {
			return fmt.Errorf("disconnecting from network %q: %w", name, err)
		}
	}
	if names, err = networksOf(ctx, api, id); err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("disconnecting from networks: %q are still connected", names)
	}
	return nil
}

// attachNetworks connects a container with networks that it is not on.
func attachNetworks(ctx context.Context, api *client.Client, id string, names []string) error {
	have, err := networksOf(ctx, api, id)
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.Contains(have, name) {
			continue
		}
		if _, err := api.NetworkConnect(ctx, name, client.NetworkConnectOptions{Container: id}); err != nil {
			return fmt.Errorf("connecting with network %q: %w", name, err)
		}
	}
	return nil
}

// SetNetwork changes what a container can reach that was created with
// Network.Switchable. Public is the engine's network; otherwise the container
// is on none, and what is on the allow list is reached through the egress
// proxy.
func (c *Container) SetNetwork(ctx context.Context, mode sandbox.NetworkMode, hosts []string) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	if c.net == nil || !c.net.opts.Switchable {
		return fmt.Errorf("switching the network of container %s, which was not created for it: %w", c.name, sandbox.ErrUnsupported)
	}
	select {
	case c.net.switching <- struct{}{}:
		defer func() { <-c.net.switching }()
	case <-ctx.Done():
		return c.explain(ctx, "switching the network", context.Cause(ctx))
	}
	if err := c.setNetwork(ctx, egress.Policy{Mode: mode, Hosts: hosts}); err != nil {
		return c.explain(ctx, "switching the network", err)
	}
	return nil
}

func (c *Container) setNetwork(ctx context.Context, policy egress.Policy) error {
	if !public(policy.Mode) {
		if err := detach(ctx, c.api, c.id); err != nil {
			return err
		}
	}
	if policy.Mode == sandbox.NetworkAllowlist {
		if err := c.net.gate.SetPolicy(ctx, policy); err != nil {
			return err
		}
	} else {
		c.net.gate.Restrict(policy) // without a relay as well
	}
	if public(policy.Mode) {
		if err := attachNetworks(ctx, c.api, c.id, c.net.names); err != nil {
			return err
		}
	}
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.net.mode = policy.Mode
	return nil
}

// openGate starts the egress proxy of a container that may need it, and its
// relay before any command, so that no mark of the caller's is older than that.
func (c *Container) openGate(ctx context.Context) error {
	n := c.net
	if !proxied(n.opts) {
		return nil
	}
	gate, err := egress.Open(ctx, egress.Options{
		Exec: c.exec, Relay: relay(),
		Policy: egress.Policy{Mode: n.mode, Hosts: n.opts.Hosts}, Log: n.opts.Log, Upstream: n.b.egress, Now: n.b.now,
	})
	n.gate = gate
	return err
}

// proxied is a command with the variables by which programs find the egress
// proxy, where that is the way out.
func (c *Container) proxied(cmd sandbox.Command) sandbox.Command {
	if c.net == nil || c.net.gate == nil {
		return cmd
	}
	c.net.mu.Lock()
	mode := c.net.mode
	c.net.mu.Unlock()
	if public(mode) {
		return cmd
	}
	return c.net.gate.Command(cmd, c.spec.Env)
}

// relay is the guest program as a relay.
func relay() []string { return []string{guestPath, guest.RelayMode} }

// Listen lets programs in the container reach this program, see egress.Listener.
// The supervisor runs what carries the connections; without one it is
// sandbox.ErrUnsupported.
func (c *Container) Listen(ctx context.Context) (net.Listener, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	if c.guest == nil {
		return nil, fmt.Errorf("listening in container %s, which has no supervisor: %w", c.name, sandbox.ErrUnsupported)
	}
	l, err := c.inlets.Listen(ctx, egress.ListenOptions{Exec: c.exec, Relay: relay()})
	if err != nil {
		return nil, c.explain(ctx, "listening", err)
	}
	return l, nil
}

// shutRelays ends all connections through the egress proxy and to listeners.
// awaitRelays then returns when nothing of them is left.
func (c *Container) shutRelays() {
	if c.net != nil && c.net.gate != nil {
		c.net.gate.Shut()
	}
	c.inlets.Shut()
}

func (c *Container) awaitRelays(ctx context.Context) error {
	if c.net != nil && c.net.gate != nil {
		if err := c.net.gate.Wait(ctx); err != nil {
			return err
		}
	}
	return c.inlets.Wait(ctx)
}
