package fake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

// Handler is what a command does. It returns the exit code. An error is the
// sandbox's failure and becomes Exec's; a handler that stops because ctx has
// ended returns context.Cause(ctx). It must stop then, and must not use p
// after it has returned.
type Handler func(ctx context.Context, p *Process) (code int, err error)

// Rule lets commands that match be handled.
type Rule struct {
	Match func(cmd sandbox.Command) bool
	Do    Handler
}

// On matches commands whose shell text or arguments contain part, and does
// the handlers in order.
func On(part string, do ...Handler) Rule {
	return Rule{
		Match: func(cmd sandbox.Command) bool {
			return strings.Contains(cmd.Shell, part) || strings.Contains(strings.Join(cmd.Argv, " "), part)
		},
		Do: InOrder(do...),
	}
}

// Refuse is the outcome of a command that cannot be started, for example
// because there is no such user.
func Refuse(why string) Handler {
	return func(_ context.Context, p *Process) (int, error) {
		p.refused = true
		if _, err := io.WriteString(p.Stdout, why); err != nil {
			return 126, fmt.Errorf("writing the output: %w", err)
		}
		return 126, nil
	}
}

// Always matches every command.
func Always(do ...Handler) Rule {
	return Rule{Match: func(sandbox.Command) bool { return true }, Do: InOrder(do...)}
}

// InOrder does one after the other until one exits non-zero.
func InOrder(all ...Handler) Handler {
	return func(ctx context.Context, p *Process) (int, error) {
		for _, do := range all {
			if code, err := do(ctx, p); code != 0 || err != nil {
				return code, err
			}
		}
		return 0, nil
	}
}

// Each does the first for the first command that comes, the second for the
// second and so on, and the last for all further ones.
func Each(all ...Handler) Handler {
	var mu sync.Mutex
	next := 0
	return func(ctx context.Context, p *Process) (int, error) {
		mu.Lock()
		do := all[next]
		next = min(next+1, len(all)-1)
		mu.Unlock()
		return do(ctx, p)
	}
}

// Exit ends with a code.
func Exit(code int) Handler {
	return func(context.Context, *Process) (int, error) { return code, nil }
}

// Fail lets Exec return an error. Nil means ErrInjected.
func Fail(err error) Handler {
	if err == nil {
		err = ErrInjected
	}
	return func(context.Context, *Process) (int, error) { return 0, err }
}

// Print writes to standard output.
func Print(text string) Handler {
	return func(_ context.Context, p *Process) (int, error) {
		_, _ = io.WriteString(p.Stdout, text)
		return 0, nil
	}
}

// PrintErr writes to standard error.
func PrintErr(text string) Handler {
	return func(_ context.Context, p *Process) (int, error) {
		_, _ = io.WriteString(p.Stderr, text)
		return 0, nil
	}
}

// Cat copies standard input to standard output.
func Cat() Handler {
	return func(ctx context.Context, p *Process) (int, error) {
		_, err := io.Copy(p.Stdout, p.Stdin)
		if err != nil && ctx.Err() == nil {
			return 1, nil
		}
		return 0, context.Cause(ctx)
	}
}

// Flood writes n bytes of lines to standard output without holding them.
func Flood(n int64) Handler {
	return func(ctx context.Context, p *Process) (int, error) {
		chunk := []byte(strings.Repeat("y\n", 32<<10))
		for left := n; left > 0 && ctx.Err() == nil; left -= int64(len(chunk)) {
			_, _ = p.Stdout.Write(chunk[:min(left, int64(len(chunk)))])
		}
		return 0, context.Cause(ctx)
	}
}

// Garbage writes n bytes that are no text to both streams, the same ones for
// the same seed.
func Garbage(n int, seed uint64) Handler {
	return func(_ context.Context, p *Process) (int, error) {
		r := rand.New(rand.NewPCG(seed, seed))
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		_, _ = p.Stdout.Write(b)
		_, _ = p.Stderr.Write(b)
		return 0, nil
	}
}

// Hang does not end by itself.
func Hang() Handler { return Wait(nil) }

// Wait waits until the channel is closed.
func Wait(until <-chan struct{}) Handler {
	return func(ctx context.Context, _ *Process) (int, error) {
		select {
		case <-until:
			return 0, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// Sleep takes time.
func Sleep(d time.Duration) Handler {
	return func(ctx context.Context, _ *Process) (int, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return 0, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// Write writes a file in the sandbox, below a mount also on the host.
func Write(path, content string) Handler {
	return func(_ context.Context, p *Process) (int, error) {
		if err := p.Sandbox.WriteFile(path, []byte(content), 0o644); err != nil {
			_, _ = fmt.Fprintln(p.Stderr, err)
			return 1, nil
		}
		return 0, nil
	}
}

// Leave starts a process that continues when its command has ended. It ends
// with KillTree, with an Exec that is ended and began before it, or with
// Destroy; those wait until the handler has returned.
func Leave(do Handler) Handler {
	return func(_ context.Context, p *Process) (int, error) {
		p.Sandbox.background(p, do) //nolint:contextcheck // it outlives its command
		return 0, nil
	}
}

// Process is one command under way.
type Process struct {
	Sandbox *Sandbox
	Command sandbox.Command
	// Env, Dir and User are what holds for the command: its own over the
	// Spec's.
	Env  map[string]string
	Dir  string
	User string
	// Stdin is never nil. Stdout and Stderr accept everything; without a
	// Stderr of the command they are the same.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	number  int  // the command's number in its sandbox
	refused bool // see Refuse
}

func newProcess(sb *Sandbox, cmd sandbox.Command) *Process {
	p := &Process{
		Sandbox: sb, Command: cmd, Env: map[string]string{},
		Dir: cmp.Or(cmd.Dir, sb.spec.Workdir, "/"), User: cmp.Or(cmd.User, sb.spec.User),
		Stdin: cmd.Stdin,
	}
	for _, env := range [][]string{sb.spec.Env, cmd.Env} {
		for _, kv := range env {
			name, value, _ := strings.Cut(kv, "=")
			p.Env[name] = value
		}
	}
	if p.Stdin == nil {
		p.Stdin = strings.NewReader("")
	}
	out := &sink{w: cmd.Stdout}
	p.Stdout, p.Stderr = out, out
	if cmd.Stderr != nil {
		p.Stderr = &sink{w: cmd.Stderr}
	}
	return p
}

// sink does not write again to a writer that has failed, and accepts all.
type sink struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w != nil {
		if n, err := s.w.Write(p); err != nil || n < len(p) {
			s.w = nil
		}
	}
	return len(p), nil
}

// close drops the writer: what is left running writes nowhere.
func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w = nil
}

// Why a process is ended, as the cause of its context.
var (
	errKilled    = errors.New("fake: killed")
	errTimedOut  = errors.New("fake: timed out")
	errInterrupt = errors.New("fake: the context of Exec ended")
)
