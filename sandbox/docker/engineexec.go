package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

// tailLimit bounds the wait for output's end when the command has ended.
const tailLimit = 5 * time.Second

var errTimeout = errors.New("the command's time is up")

// process is one command under way by the engine's exec.
type process struct {
	id   string
	conn client.HijackedResponse

	stdout, stderr *sink

	over chan struct{} // closed when the stream has ended
	err  error         // of the stream, once over
}

// engineExec runs a command by the engine's exec, without anything in the
// container that would have to be trusted.
func (c *Container) engineExec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	p, err := c.start(ctx, cmd)
	if err != nil {
		return sandbox.ExitStatus{}, c.explain(ctx, "starting a command", err)
	}
	defer p.stdout.close()
	defer p.stderr.close()
	if cmd.Stdin != nil {
		// Not waited for: it may hang in the caller's reader. It ends with
		// its next write.
		go p.feed(cmd.Stdin)
	}
	limited, cancel := ctx, func() {}
	if cmd.Timeout > 0 {
		limited, cancel = context.WithTimeoutCause(ctx, cmd.Timeout, errTimeout)
	}
	defer cancel()
	select {
	case <-p.over:
		return c.result(ctx, p)
	case <-limited.Done():
		return c.end(ctx, limited, p)
	}
}

// errNotText refuses what the engine's exec would change on its way: its
// requests are JSON.
var errNotText = errors.New("arguments and variables that are not UTF-8 cannot be passed on by the engine")

// start asks the engine to run the command and begins to read its output.
func (c *Container) start(ctx context.Context, cmd sandbox.Command) (*process, error) {
	argv := cmd.Argv
	if len(argv) == 0 {
		argv = []string{"bash", "-c", cmd.Shell}
	}
	for _, list := range [][]string{argv, cmd.Env} {
		for _, text := range list {
			if !utf8.ValidString(text) {
				return nil, errNotText
			}
		}
	}
	created, err := c.api.ExecCreate(ctx, c.id, client.ExecCreateOptions{
		User: cmd.User, WorkingDir: cmd.Dir, Env: cmd.Env, Cmd: argv,
		AttachStdin: cmd.Stdin != nil, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return nil, fmt.Errorf("handing it to the engine: %w", err)
	}
	p := &process{
		id:     created.ID,
		stdout: &sink{w: cmd.Stdout}, stderr: &sink{w: cmd.Stderr},
		over: make(chan struct{}),
	}
	attachCtx, cancel := engine.Detached(ctx)
	defer cancel()
	if p.conn, err = attach(attachCtx, c.api, p.id); err != nil {
		return nil, err
	}
	if !c.enter(p) {
		p.conn.Close()
		return nil, sandbox.ErrDestroyed
	}
	errs := p.stdout
	if cmd.Stderr != nil {
		errs = p.stderr
	}
	go p.read(c, errs)
	return p, nil
}

// attach starts an exec and takes over its streams.
func attach(ctx context.Context, api *client.Client, id string) (client.HijackedResponse, error) {
	r, err := api.ExecAttach(ctx, id, client.ExecAttachOptions{})
	if err != nil {
		return client.HijackedResponse{}, fmt.Errorf("attaching to it: %w", err)
	}
	return r.HijackedResponse, nil
}

// read hands on the output until it ends. It is joined through p.over.
func (p *process) read(c *Container, stderr io.Writer) {
	p.err = demultiplex(p.conn.Reader, p.stdout, stderr)
	p.conn.Close()
	c.leave(p)
	close(p.over)
}

// feed copies standard input until the command, or the input, ends.
func (p *process) feed(stdin io.Reader) {
	_, _ = io.Copy(struct{ io.Writer }{p.conn.Conn}, stdin)
	_ = p.conn.CloseWrite()
}

// result of a command whose output has ended.
func (c *Container) result(ctx context.Context, p *process) (sandbox.ExitStatus, error) {
	if c.gone() {
		return sandbox.ExitStatus{}, c.explain(ctx, "running a command", sandbox.ErrDestroyed)
	}
	ctx, cancel := engine.Detached(ctx)
	defer cancel()
	for {
		state, err := c.api.ExecInspect(ctx, p.id, client.ExecInspectOptions{})
		if err != nil {
			return sandbox.ExitStatus{}, c.explain(ctx, "asking for a command's exit code", err)
		}
		if !state.Running {
			return sandbox.ExitStatus{Code: state.ExitCode}, nil
		}
		if p.err != nil {
			return sandbox.ExitStatus{}, c.explain(ctx, "reading a command's output", p.err)
		}
		if err := clock.Sleep(ctx, 20*time.Millisecond); err != nil {
			return sandbox.ExitStatus{}, c.explain(ctx, "waiting for a command's exit code", err)
		}
	}
}

// end ends what the command started, and everything else, and returns when it
// is gone.
func (c *Container) end(ctx, limited context.Context, p *process) (sandbox.ExitStatus, error) {
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), killLimit)
	defer cancel()
	err := c.restart(kill)
	tail := time.NewTimer(tailLimit)
	defer tail.Stop()
	select {
	case <-p.over:
	case <-tail.C:
		p.conn.Close()
		<-p.over
	}
	switch {
	case err != nil:
		return sandbox.ExitStatus{}, c.explain(ctx, "ending a command", errors.Join(context.Cause(limited), err))
	case ctx.Err() != nil:
		return sandbox.ExitStatus{}, c.explain(ctx, "running a command", fmt.Errorf("it was ended: %w", context.Cause(ctx)))
	}
	return sandbox.ExitStatus{Code: 128 + 9, TimedOut: true}, nil
}

// sink passes output to a command's writer until that fails or is closed.
type sink struct {
	mu   sync.Mutex
	w    io.Writer // nil: dropped
	over bool
}

// Write never fails: a command continues without its reader.
func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w != nil && !s.over && len(p) > 0 {
		if n, err := s.w.Write(p); err != nil || n < len(p) {
			s.over = true
		}
	}
	return len(p), nil
}

// close waits for a write under way; later ones are dropped.
func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}
