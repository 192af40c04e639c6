package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
)

const (
	// killLimit bounds ending processes beyond their grace.
	killLimit = 60 * time.Second
	// lookEvery is how long a sweep sleeps between two looks, and maxLooks
	// how often it looks: other helpers wait meanwhile.
	lookEvery = 50 * time.Millisecond
	maxLooks  = 6
	// killTries is how often the last sweep is started: the container may be
	// too full of processes for one to begin.
	killTries = 3
)

// Mark notes the moment by starting a process: what is born later has a later
// start time, or the same and a higher pid.
func (c *Container) Mark(ctx context.Context) (sandbox.Mark, error) {
	if err := c.usable(ctx); err != nil {
		return "", err
	}
	words, err := c.sweep(ctx, "mark", birth{}, "all", 0)
	if err != nil {
		return "", c.explain(ctx, "marking the processes", err)
	}
	var at birth
	if len(words) == 3 && words[0] == "mark" {
		at.start, err = strconv.ParseUint(words[1], 10, 64)
		if err == nil {
			at.pid, err = strconv.Atoi(words[2])
		}
	}
	if err != nil || at.pid == 0 {
		return "", fmt.Errorf("marking the processes: the container answers %q", words)
	}
	return sandbox.Mark(fmt.Sprintf("%s/%s", c.id, at)), nil
}

// KillTree ends what was born since the mark, commands under way included. An
// error means that something may be left.
func (c *Container) KillTree(ctx context.Context, since sandbox.Mark, grace time.Duration) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	id, moment, _ := strings.Cut(string(since), "/")
	pid, start, found := strings.Cut(moment, ":")
	at := birth{}
	var err, err2 error
	at.pid, err = strconv.Atoi(pid)
	at.start, err2 = strconv.ParseUint(start, 10, 64)
	if id != c.id || !found || err != nil || err2 != nil {
		return fmt.Errorf("killing processes: %q is no mark of this sandbox", since)
	}
	at.pid++ // the marking process itself is gone
	if grace == 0 {
		grace = sandbox.DefaultGrace
	}
	limited, cancel := context.WithTimeout(ctx, grace+killLimit)
	defer cancel()
	if err := c.kill(limited, at, true, grace); err != nil {
		return c.explain(ctx, "killing processes", err)
	}
	return nil
}

var errLeft = errors.New("processes are left")

// kill ends what was born at or after since: SIGTERM, after grace SIGKILL,
// until a look at the container proves that nothing is left.
func (c *Container) kill(ctx context.Context, since birth, all bool, grace time.Duration) error {
	others := "spare"
	if all {
		others = "all"
	}
	deadline := c.now().Add(grace)
	for mode := "term"; ; mode = "wait" {
		looks := min(maxLooks, int(deadline.Sub(c.now())/lookEvery))
		left, err := c.left(ctx, mode, since, others, max(looks, 0))
		if err == nil && left == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// A sweep that could not do its work is repeated by the last one.
		if err != nil || !c.now().Before(deadline) {
			break
		}
	}
	var errs error
	for range killTries {
		left, err := c.left(ctx, "kill", since, others, 0)
		switch {
		case err == nil && left == 0:
			return nil
		case err == nil:
			errs = fmt.Errorf("%d %w", left, errLeft)
		default:
			errs = err
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), errs)
		}
	}
	return errs
}

// left is a sweep that answers how many processes it has left.
func (c *Container) left(ctx context.Context, mode string, since birth, others string, looks int) (int, error) {
	words, err := c.sweep(ctx, mode, since, others, looks)
	if err != nil {
		return 0, err
	}
	if len(words) == 2 && words[0] == "left" {
		if n, err := strconv.Atoi(words[1]); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("looking for processes: the container answers %q", words)
}

// sweep runs the sweep script as root. Sweeps of one container run one after
// another: they would see each other.
func (c *Container) sweep(ctx context.Context, mode string, since birth, others string, looks int) ([]string, error) {
	select {
	case c.sweeping <- struct{}{}:
		defer func() { <-c.sweeping }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	created, err := c.api.ExecCreate(ctx, c.id, client.ExecCreateOptions{
		User:       "0:0",
		WorkingDir: "/",
		Env:        []string{"LC_ALL=C", "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LD_PRELOAD=", "LD_LIBRARY_PATH="},
		Cmd: []string{"sh", "-c", sweepScript, "sh", mode,
			strconv.FormatUint(since.start, 10), strconv.Itoa(since.pid), others, c.notUnderWay(since), strconv.Itoa(looks)},
		AttachStdout: true,
		AttachStderr: true,
	})
	if err != nil {
		return nil, fmt.Errorf("looking for processes: %w", err)
	}
	conn, err := attach(ctx, c.api, created.ID)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, conn.Close)
	defer stop()
	var out limitedBuffer
	if err := demultiplex(conn.Reader, &out, &out); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	return strings.Fields(out.String()), nil
}

// limitedBuffer keeps the first few KiB of what is written to it.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	const limit = 4 << 10
	b.Buffer.Write(p[:min(len(p), limit-min(limit, b.Len()))])
	return len(p), nil
}
