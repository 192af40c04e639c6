package infra

import (
	"context"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/internal/shellword"
	"github.com/proctor-run/proctor/sandbox"
)

// sandboxContainer is a sandbox as a Container.
type sandboxContainer struct {
	sb   sandbox.Sandbox
	keep bool
}

var _ Container = (*sandboxContainer)(nil)

// SandboxContainer returns a sandbox as a [Container]. Stop destroys it.
func SandboxContainer(sb sandbox.Sandbox) Container { return &sandboxContainer{sb: sb} }

// SandboxOf returns the sandbox behind a container, if there is one: cubes that
// move files need more than a shell. A container that wraps another has a method
// Unwrap() Container.
func SandboxOf(c Container) (sandbox.Sandbox, bool) {
	for {
		if s, ok := c.(*sandboxContainer); ok {
			return s.sb, true
		}
		wrapper, ok := c.(interface{ Unwrap() Container })
		if !ok {
			return nil, false
		}
		c = wrapper.Unwrap()
	}
}

func (c *sandboxContainer) ID() string { return c.sb.ID() }

// captureLimit bounds what is kept of each output stream, in bytes; half from
// the beginning, half from the end.
const captureLimit = 8 << 20

// Exec runs the command in a login shell.
func (c *sandboxContainer) Exec(ctx context.Context, req ExecRequest) (ExecResult, error) {
	stdout, stderr := newCapture(captureLimit), newCapture(captureLimit)
	cmd := sandbox.Command{
		Argv:    []string{"sh", "-lc", req.Command},
		Dir:     req.Workdir,
		Stdout:  stdout,
		Stderr:  stderr,
		Timeout: req.Timeout,
	}
	for k, v := range req.Env.All() {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	now := clock.Or(nil)
	start := now()
	status, err := c.sb.Exec(ctx, cmd)
	if err != nil {
		return ExecResult{}, exception.Errorf(ContainerExecErrorKind, "running %q: %w", ShellLine(req), err)
	}
	code := status.Code
	if status.TimedOut {
		code = TimedOutCode
	}
	return ExecResult{
		Stdout:          stdout.String(),
		Stderr:          stderr.String(),
		ExitCode:        code,
		DurationSeconds: math.Round(now().Sub(start).Seconds()*1000) / 1000,
	}, nil
}

func (c *sandboxContainer) ForwardPort(_ context.Context, port int) (int, error) {
	return 0, notExposed(port)
}

// Stop destroys the sandbox, or leaves it stopped where that was asked for.
func (c *sandboxContainer) Stop(ctx context.Context) error {
	if s, ok := sandbox.As[sandbox.Stopper](c.sb); ok && c.keep {
		_, err := s.Stop(ctx)
		return err
	}
	return c.sb.Destroy(ctx)
}

// ShellLine returns the command line that a local container runs for a
// request, as the reference writes it (CUBE, section 5).
func ShellLine(req ExecRequest) string {
	line := "sh -lc " + ShellQuote(req.Command)
	if req.Timeout > 0 {
		line = "timeout " + strconv.FormatFloat(req.Timeout.Seconds(), 'f', -1, 64) + "s " + line
	}
	return line
}

// ShellQuote quotes a word for a POSIX shell, like Python's shlex.quote: what
// needs no quotes gets none.
func ShellQuote(s string) string { return shellword.Quote(s) }

// capture keeps the beginning and the end of a stream.
type capture struct {
	mu   sync.Mutex
	head []byte
	room int
	tail *bounded.Tail
}

func newCapture(limit int) *capture {
	return &capture{room: limit / 2, tail: bounded.NewTail(limit - limit/2)}
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	k := min(n, c.room-len(c.head))
	c.head = append(c.head, p[:k]...)
	if k < n {
		_, _ = c.tail.Write(p[k:])
	}
	return n, nil
}

// String returns the stream as UTF-8, with the replacement character for what
// is none.
func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := string(c.head) + c.tail.String()
	if utf8.ValidString(b) {
		return b
	}
	return string([]rune(b))
}
