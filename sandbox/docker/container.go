package docker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

var (
	_ sandbox.Sandbox = (*Container)(nil)
	_ sandbox.Stopper = (*Container)(nil)
)

// Container is a sandbox. Which of its commands are under way is known to its
// supervisor, or else to it.
type Container struct {
	api   *client.Client
	now   func() time.Time
	id    string
	name  string
	image string // digest of its image's configuration
	spec  sandbox.Spec
	net   *containerNetwork // nil where no network is changed or proxied

	inlets egress.Inlets

	guest      *supervision  // nil where the engine alone supervises
	rootless   *rootless     // the engine's
	restarting chan struct{} // holds one restart, where it does

	removing chan struct{} // holds the one that removes
	removed  bool          // guarded by removing

	mu        sync.Mutex
	destroyed bool
	processes map[*process]struct{} // whose streams are open
}

func newContainer(api *client.Client, now func() time.Time, id, name string, spec sandbox.Spec) *Container {
	return &Container{
		api: api, now: now, id: id, name: name, spec: spec,
		restarting: make(chan struct{}, 1),
		removing:   make(chan struct{}, 1),
		processes:  make(map[*process]struct{}),
	}
}

// ID is the container's id.
func (c *Container) ID() string { return c.id }

func (c *Container) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.destroyed
}

// usable is what every call asks first.
func (c *Container) usable(ctx context.Context) error {
	if c.gone() {
		return fmt.Errorf("container %s: %w", c.name, sandbox.ErrDestroyed)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("container %s: %w", c.name, context.Cause(ctx))
	}
	return nil
}

// explain wraps what went wrong during an action with the reason behind it: the
// end of the context, or of the container.
func (c *Container) explain(ctx context.Context, action string, err error) error {
	if lost := c.lost(ctx, err); lost != nil {
		err = fmt.Errorf("%w: %w", lost, err)
	}
	switch {
	case c.gone() && !errors.Is(err, sandbox.ErrDestroyed):
		return fmt.Errorf("%s in container %s: %w: %w", action, c.name, sandbox.ErrDestroyed, err)
	case ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)):
		return fmt.Errorf("%s in container %s: %w: %w", action, c.name, context.Cause(ctx), err)
	}
	return fmt.Errorf("%s in container %s: %w", action, c.name, err)
}

// enter notes an open stream, unless the container is destroyed.
func (c *Container) enter(p *process) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.destroyed {
		c.processes[p] = struct{}{}
	}
	return !c.destroyed
}

func (c *Container) leave(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.processes, p)
}

// Destroy kills and removes the container with its anonymous volumes.
func (c *Container) Destroy(ctx context.Context) error {
	c.mu.Lock()
	c.destroyed = true
	open := make([]*process, 0, len(c.processes))
	for p := range c.processes {
		open = append(open, p)
	}
	c.mu.Unlock()
	c.shutRelays()
	if c.guest != nil {
		// Calls under way return, and everything inside ends.
		if err := c.guest.client.Close(); err != nil {
			return fmt.Errorf("destroying container %s: %w", c.name, err)
		}
	}

	select {
	case c.removing <- struct{}{}:
		defer func() { <-c.removing }()
	case <-ctx.Done():
		return fmt.Errorf("destroying container %s: %w", c.name, context.Cause(ctx))
	}
	if !c.removed {
		if err := engine.Remove(ctx, c.api, c.id); err != nil {
			return fmt.Errorf("destroying container %s: %w", c.name, err)
		}
		c.removed = true
	}
	for _, p := range open {
		p.conn.Close()
	}
	for _, p := range open {
		select {
		case <-p.over:
		case <-ctx.Done(): // its reader waits for the caller's own sink
			return nil
		}
	}
	return c.awaitRelays(ctx)
}

// Stop kills what runs and leaves the container's files for inspection.
func (c *Container) Stop(ctx context.Context) (hint string, err error) {
	if err := c.usable(ctx); err != nil {
		return "", err
	}
	c.shutRelays()
	now := 0
	if _, err := c.api.ContainerStop(ctx, c.id, client.ContainerStopOptions{Signal: "SIGKILL", Timeout: &now}); err != nil {
		return "", c.explain(ctx, "stopping", err)
	}
	if err := c.awaitRelays(ctx); err != nil {
		return "", c.explain(ctx, "stopping", err)
	}
	return fmt.Sprintf("docker start %[1]s && docker exec -it %[1]s bash; remove it with docker rm -f -v %[1]s", c.name), nil
}

// state reports whether the container's first process lives.
func state(ctx context.Context, api *client.Client, id string) (bool, *container.State, error) {
	r, err := api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return false, nil, fmt.Errorf("asking for the container's state: %w", err)
	}
	if r.Container.State == nil {
		return false, nil, errors.New("the engine tells no state")
	}
	return r.Container.State.Running, r.Container.State, nil
}
