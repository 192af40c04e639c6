package docker

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

var _ sandbox.Restarter = (*Container)(nil)

// EndAll ends every process but the supervisor, see [sandbox.Restarter]. Without a
// supervisor it is sandbox.ErrUnsupported: the engine can only start the container anew,
// which executes programs of the container.
func (c *Container) EndAll(ctx context.Context, grace time.Duration) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	if c.guest == nil {
		return fmt.Errorf("ending everything in container %s, which has no supervisor: %w", c.name, sandbox.ErrUnsupported)
	}
	limited, cancel := context.WithTimeout(ctx, cmp.Or(grace, sandbox.DefaultGrace)+killLimit)
	defer cancel()
	c.guest.service.Release()
	c.inlets.Close()
	end := func() error {
		if err := c.guest.client.KillAll(limited, grace); err != nil {
			return err
		}
		return c.agree(limited)
	}
	if err := c.withoutRelay(limited, end); err != nil {
		return c.explain(ctx, "ending everything", err)
	}
	return nil
}

// withoutRelay does something while no relay of the egress proxy runs.
func (c *Container) withoutRelay(ctx context.Context, do func() error) error {
	if c.net == nil || c.net.gate == nil {
		return do()
	}
	return c.net.gate.Renew(ctx, do)
}

// StartServices starts the image's entrypoint, or the command of a compose service, again.
// An entrypoint is waited for as at the start of the container.
func (c *Container) StartServices(ctx context.Context) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	if c.guest == nil {
		return fmt.Errorf("starting the services of container %s, which has no supervisor: %w", c.name, sandbox.ErrUnsupported)
	}
	c.guest.start(ctx)
	if c.guest.settle == nil {
		return nil
	}
	if err := c.guest.settle(ctx); err != nil {
		return c.explain(ctx, "starting the services", err)
	}
	return nil
}
