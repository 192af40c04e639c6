package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

const (
	// tailLimit bounds the wait for output's end when the command has ended.
	tailLimit = 5 * time.Second
)

var errTimeout = errors.New("the command's time is up")

// process is one command under way, or one whose daemons hold its output.
type process struct {
	id   string
	conn client.HijackedResponse

	stdout, stderr *sink

	born  chan struct{} // closed when root is set
	ended chan struct{} // closed when the command has ended, or over is
	over  chan struct{} // closed when the stream has ended

	mu       sync.Mutex
	root     birth
	code     int
	reported int // streams whose end was read
	err      error
	once     sync.Once
}

// Exec runs a command; see the package for how. Where the engine itself cannot
// start it (an unknown user, a missing directory), the engine's message is the
// command's output and the code is 126 or 127.
func (c *Container) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	return c.exec(ctx, c.proxied(cmd))
}

func (c *Container) exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	if err := c.usable(ctx); err != nil {
		return sandbox.ExitStatus{}, err
	}
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
	case <-p.ended:
		return c.result(ctx, p)
	case <-limited.Done():
		return c.end(ctx, limited, p, cmd)
	}
}

// start asks the engine to run the command and begins to read its output.
func (c *Container) start(ctx context.Context, cmd sandbox.Command) (*process, error) {
	word := "\x1e" + engine.Secret()
	created, err := c.api.ExecCreate(ctx, c.id, wrapped(c.spec, cmd, word))
	if err != nil {
		return nil, fmt.Errorf("handing it to the engine: %w", err)
	}
	p := &process{
		id:     created.ID,
		stdout: &sink{w: cmd.Stdout},
		stderr: &sink{w: cmd.Stderr},
		born:   make(chan struct{}),
		ended:  make(chan struct{}),
		over:   make(chan struct{}),
	}
	streams := 1
	errs := p.stdout
	if cmd.Stderr != nil {
		streams, errs = 2, p.stderr
	}
	ended := func(code int) { p.report(code, streams) }
	out := newFramed(word, p.stdout, p.begin, ended)
	var side io.Writer = errs
	if streams == 2 {
		side = newFramed(word, errs, nil, ended)
	}
	attachCtx, cancel := engine.Detached(ctx)
	defer cancel()
	p.conn, err = attach(attachCtx, c.api, p.id)
	if err != nil {
		return nil, err
	}
	if !c.enter(p) {
		p.conn.Close()
		return nil, sandbox.ErrDestroyed
	}
	go p.read(c, out, side)
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

// read takes the output apart until it ends. It is joined through p.over, by
// Exec or, when the command has left daemons, by Destroy.
func (p *process) read(c *Container, out *framed, side io.Writer) {
	err := demultiplex(p.conn.Reader, out, side)
	out.finish()
	if f, ok := side.(*framed); ok {
		f.finish()
	}
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	p.conn.Close()
	c.leave(p)
	close(p.over)
	p.once.Do(func() { close(p.ended) })
}

func (p *process) begin(b birth) {
	p.mu.Lock()
	p.root = b
	p.mu.Unlock()
	close(p.born)
}

// report notes the exit code; the command has ended when each stream has reported it.
func (p *process) report(code, streams int) {
	p.mu.Lock()
	p.code = code
	p.reported++
	all := p.reported == streams
	p.mu.Unlock()
	if all {
		p.once.Do(func() { close(p.ended) })
	}
}

// outcome is the exit code that the wrapper reported, if it did.
func (p *process) outcome() (code int, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.code, p.reported > 0
}

// feed copies standard input until the command, or the input, ends.
func (p *process) feed(stdin io.Reader) {
	_, _ = io.Copy(struct{ io.Writer }{p.conn.Conn}, stdin)
	_ = p.conn.CloseWrite()
}

// result of a command that has ended by itself.
func (c *Container) result(ctx context.Context, p *process) (sandbox.ExitStatus, error) {
	if c.gone() {
		return sandbox.ExitStatus{}, c.explain(ctx, "running a command", sandbox.ErrDestroyed)
	}
	if code, known := p.outcome(); known {
		_ = p.conn.CloseWrite() // daemons get no more input
		return sandbox.ExitStatus{Code: code}, nil
	}
	// The wrapper did not live to tell, or was never there: ask the engine.
	ctx, cancel := engine.Detached(ctx)
	defer cancel()
	for {
		state, err := c.api.ExecInspect(ctx, p.id, client.ExecInspectOptions{})
		if err != nil {
			return sandbox.ExitStatus{}, c.explain(ctx, "asking for a command's exit code", err)
		}
		if !state.Running {
			return sandbox.ExitStatus{Code: state.ExitCode, NotStarted: !p.wasBorn() && notStarted(state.ExitCode)}, nil
		}
		if p.broken() {
			return sandbox.ExitStatus{}, c.explain(ctx, "reading a command's output", p.err)
		}
		if err := clock.Sleep(ctx, 20*time.Millisecond); err != nil {
			return sandbox.ExitStatus{}, c.explain(ctx, "waiting for a command's exit code", err)
		}
	}
}

// wasBorn reports whether the wrapper has reported its start.
func (p *process) wasBorn() bool {
	select {
	case <-p.born:
		return true
	default:
		return false
	}
}

// notStarted reports whether an engine has this exit code for what it cannot
// start.
func notStarted(code int) bool { return code == 126 || code == 127 }

func (p *process) broken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil
}

// end kills what the command started, and returns when it is gone.
func (c *Container) end(ctx, limited context.Context, p *process, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	grace := cmd.Grace
	if grace == 0 {
		grace = sandbox.DefaultGrace
	}
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace+killLimit)
	defer cancel()
	select {
	case <-p.born:
	case <-p.over:
	case <-kill.Done():
	}
	p.mu.Lock()
	root := p.root
	p.mu.Unlock()
	if root != (birth{}) {
		if err := c.kill(kill, root, false, grace); err != nil {
			p.conn.Close()
			<-p.over
			return sandbox.ExitStatus{}, c.explain(ctx, "ending a command", errors.Join(context.Cause(limited), err))
		}
	}
	tail := time.NewTimer(tailLimit)
	defer tail.Stop()
	select {
	case <-p.over:
	case <-tail.C:
		p.conn.Close()
		<-p.over
		if root == (birth{}) {
			return sandbox.ExitStatus{}, fmt.Errorf("ending a command that the engine has not started: %w", context.Cause(limited))
		}
	}
	if ctx.Err() != nil {
		return sandbox.ExitStatus{}, c.explain(ctx, "running a command", context.Cause(ctx))
	}
	code, known := p.outcome()
	if !known {
		code = 128 + 9
	}
	return sandbox.ExitStatus{Code: code, TimedOut: true}, nil
}
