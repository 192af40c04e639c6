package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

// Exec runs a command; see the package for how. What cannot be started (an
// unknown user, a missing directory) is said in the command's output, and the
// code is 126 or 127.
func (c *Container) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	return c.exec(ctx, c.proxied(cmd))
}

func (c *Container) exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	if err := c.usable(ctx); err != nil {
		return sandbox.ExitStatus{}, err
	}
	cmd.Env = sandbox.MergeEnv(c.spec.Env, cmd.Env)
	cmd.User, cmd.Dir = cmp.Or(cmd.User, c.spec.User), cmp.Or(cmd.Dir, c.spec.Workdir)
	if c.guest == nil {
		return c.engineExec(ctx, cmd)
	}
	status, err := c.guest.client.Exec(ctx, cmd)
	if ctx.Err() != nil || status.TimedOut {
		// The supervisor has ended it and proven that nothing is left.
		err = errors.Join(err, c.confirm(ctx))
	}
	if err != nil {
		return status, c.explain(ctx, "running a command", err)
	}
	return status, nil
}

// Mark notes which processes there are.
func (c *Container) Mark(ctx context.Context) (sandbox.Mark, error) {
	if err := c.usable(ctx); err != nil {
		return "", err
	}
	if c.guest == nil {
		return sandbox.Mark(c.id + "/" + engineMark), nil
	}
	m, err := c.guest.client.Mark(ctx)
	if err != nil {
		return "", c.explain(ctx, "marking the processes", err)
	}
	return sandbox.Mark(c.id + "/" + string(m)), nil
}

// killLimit bounds ending processes beyond their grace.
const killLimit = 60 * time.Second

// KillTree ends what was born since the mark, commands under way included; see
// the package for what that is where the engine alone supervises. An error
// means that something may be left.
func (c *Container) KillTree(ctx context.Context, since sandbox.Mark, grace time.Duration) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	mark, ok := c.markOf(since)
	if !ok {
		return fmt.Errorf("killing processes: %q is not a mark of this sandbox", since)
	}
	limited, cancel := context.WithTimeout(ctx, cmp.Or(grace, sandbox.DefaultGrace)+killLimit)
	defer cancel()
	var err error
	if c.guest == nil {
		err = c.restart(limited)
	} else if err = c.guest.client.KillTree(limited, sandbox.Mark(mark), grace); err == nil {
		err = c.agree(limited)
	}
	if err != nil {
		return c.explain(ctx, "killing processes", err)
	}
	return nil
}
