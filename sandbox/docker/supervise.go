package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

var (
	_ sandbox.ProcessLister = (*Container)(nil)
	_ sandbox.Supervised    = (*Container)(nil)
	_ sandbox.Imaged        = (*Container)(nil)
)

// ImageDigest is the engine's id of the image.
func (c *Container) ImageDigest() string { return c.image }

// Supervision says whether the container has a supervisor of its own.
func (c *Container) Supervision() string {
	if c.guest == nil {
		return sandbox.SupervisionEngine
	}
	return sandbox.SupervisionGuest
}

const (
	// The engine's list of processes is compared compareTries times, compareEvery
	// apart: the two lists are made at different moments.
	compareTries = 10
	compareEvery = 50 * time.Millisecond
	// confirmLimit bounds a comparison whose context has ended.
	confirmLimit = time.Minute
)

// contradictionError says that the engine knows of processes in a container that
// the supervisor does not see, so that its proofs are worth nothing.
type contradictionError struct{ engine, supervisor int }

func (e *contradictionError) Error() string {
	return fmt.Sprintf("processes in the container: the engine lists %d, its supervisor sees %d", e.engine, e.supervisor)
}

// agree holds the engine's own list of the container's processes, which nothing
// in the container can change, against the supervisor's: the supervisor must
// see all of them.
func (c *Container) agree(ctx context.Context) error {
	for try := 1; ; try++ {
		before, err := c.guest.client.Processes(ctx)
		if err != nil {
			return err
		}
		top, err := c.api.ContainerTop(ctx, c.id, client.ContainerTopOptions{})
		if err != nil && cannotList(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("asking the engine for the processes: %w", err)
		}
		after, err := c.guest.client.Processes(ctx)
		if err != nil {
			return err
		}
		seen := max(len(before), len(after))
		if len(top.Processes) <= seen {
			return nil
		}
		if try == compareTries {
			return &contradictionError{engine: len(top.Processes), supervisor: seen}
		}
		if err := clock.Sleep(ctx, compareEvery); err != nil {
			return err
		}
	}
}

// cannotList reports whether an engine has no means to list processes: it
// executes ps on its own machine, which may have none.
func cannotList(err error) bool {
	return cerrdefs.IsNotImplemented(err) || engine.Says(err, `"ps": executable file not found`)
}

// confirm is agree after a command was ended, also when its context has ended.
func (c *Container) confirm(ctx context.Context) error {
	select {
	case <-c.guest.client.Done():
		return nil // the end of the connection is an error already
	default:
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmLimit)
	defer cancel()
	if err := c.agree(limited); err != nil {
		return fmt.Errorf("what the command started may still be running: %w", err)
	}
	return nil
}

// Processes lists what runs in the container.
func (c *Container) Processes(ctx context.Context) ([]sandbox.Process, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	if c.guest == nil {
		return nil, fmt.Errorf("listing processes in container %s: %w", c.name, sandbox.ErrUnsupported)
	}
	procs, err := c.guest.client.Processes(ctx)
	if err != nil {
		return nil, c.explain(ctx, "listing processes", err)
	}
	return procs, nil
}

// lost says why a container whose supervisor has ended has ended: somebody else
// stopped or removed it, or it ran out of memory. Nothing where why says it.
func (c *Container) lost(ctx context.Context, why error) error {
	if c.guest == nil || c.gone() {
		return nil
	}
	select {
	case <-c.guest.client.Done():
	default:
		return nil
	}
	if _, known := errors.AsType[*sandbox.LostError](why); known {
		return nil
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmLimit)
	defer cancel()
	return &sandbox.LostError{Reason: c.fate(limited)}
}

// fate is what the engine knows of a container that has ended.
func (c *Container) fate(ctx context.Context) string {
	for range settleLooks {
		alive, s, err := state(ctx, c.api, c.id)
		switch {
		case cerrdefs.IsNotFound(err):
			return "somebody has removed the container"
		case err != nil:
			return "the connection with the container is broken, and the engine does not answer: " + err.Error()
		case !alive && s.OOMKilled:
			return "the container ran out of memory"
		case !alive:
			return strings.TrimSpace(fmt.Sprintf("somebody has stopped the container (exit code %d) %s", s.ExitCode, s.Error))
		}
		if clock.Sleep(ctx, settleEvery) != nil {
			break
		}
	}
	return "the connection with the container is broken"
}

// errRestart is wrapped by what keeps a restart from being proven.
var errRestart = errors.New("the container could not be started anew, so that something may be left")

// engineMark is the mark of containers without a supervisor: there everything
// is younger.
const engineMark = "engine"

// restart ends everything in a container that has no supervisor: the engine
// kills it and starts it again, with its files and without anything that ran.
// Nothing inside can keep a process over that.
func (c *Container) restart(ctx context.Context) error {
	select {
	case c.restarting <- struct{}{}:
		defer func() { <-c.restarting }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, before, err := state(ctx, c.api, c.id)
	if err != nil {
		return fmt.Errorf("%w: %w", errRestart, err)
	}
	now := 0
	if _, err := c.api.ContainerRestart(ctx, c.id, client.ContainerRestartOptions{Signal: "SIGKILL", Timeout: &now}); err != nil {
		return fmt.Errorf("%w: %w", errRestart, err)
	}
	alive, after, err := state(ctx, c.api, c.id)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errRestart, err)
	case !alive || after.StartedAt == before.StartedAt:
		return errRestart
	}
	return nil
}

// markOf takes a mark of this container apart.
func (c *Container) markOf(m sandbox.Mark) (own string, ok bool) {
	id, own, ok := strings.Cut(string(m), "/")
	return own, ok && id == c.id && (c.guest != nil || own == engineMark)
}
