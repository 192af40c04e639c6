package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

// Exit codes of what could not be started, as shells have them.
const (
	codeNotRunnable = 126
	codeNotFound    = 127
)

// Exec runs a command, see sandbox.Sandbox. A Stdin whose Read blocks when the
// command has ended is left to finish that one Read in the background.
func (c *Client) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	if cmd.Dir == "" {
		cmd.Dir = c.opts.Workdir
	}
	if cmd.User == "" {
		cmd.User = c.opts.User
	}
	cmd.Env = slices.Concat(c.opts.Env, cmd.Env)
	return c.ExecAlone(ctx, cmd)
}

// ExecAlone runs a command as Exec does, but without what Options say of
// commands that do not say it themselves.
func (c *Client) ExecAlone(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	out := sinks{stdout: cmd.Stdout, stderr: cmd.Stderr}
	request := c.request(cmd)
	payload := request.encode()
	if len(payload) > maxRequest {
		out.note(cmd.Stderr != nil, "argument list too long\n")
		return sandbox.ExitStatus{Code: codeNotRunnable, NotStarted: true}, nil
	}
	grace := orDefault(cmd.Grace)
	kill := ending{
		timeout: cmd.Timeout, typ: reqKill, payload: killRequest{grace: grace}.encode(),
		limit: grace + answerLimit,
	}
	k, err := c.begin(ctx, reqExec, payload, kill)
	if err != nil {
		return sandbox.ExitStatus{}, fmt.Errorf("running %s: %w", nameOf(cmd), err)
	}
	defer c.end(k)
	if cmd.Stdin != nil {
		go c.feed(k, cmd.Stdin) // ends with k, or after its current Read
	}
	r, err := c.collect(k, &out)
	if err != nil {
		return sandbox.ExitStatus{}, fmt.Errorf("running %s: %w", nameOf(cmd), err)
	}
	status := sandbox.ExitStatus{
		Code: r.code, TimedOut: r.killed && k.timedOut.Load(),
		NotStarted: r.failure == failNone && !r.killed && r.message != "",
	}
	err = r.err()
	if r.killed && !status.TimedOut {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		return status, fmt.Errorf("running %s: %w", nameOf(cmd), err)
	}
	return status, nil
}

func (c *Client) request(cmd sandbox.Command) execRequest {
	q := execRequest{
		argv: cmd.Argv, env: cmd.Env, dir: cmd.Dir, user: cmd.User,
		stdin: cmd.Stdin != nil, stdout: cmd.Stdout != nil, stderr: cmd.Stderr != nil,
		merged: cmd.Stderr == nil && cmd.Stdout != nil, powerless: c.opts.Powerless,
	}
	if len(q.argv) == 0 {
		q.argv = []string{"bash", "-c", cmd.Shell}
	}
	return q
}

// nameOf is for error messages: enough to recognise the command, and no
// arguments, which can hold secrets.
func nameOf(cmd sandbox.Command) string {
	if len(cmd.Argv) > 0 {
		return fmt.Sprintf("%q", cmd.Argv[0])
	}
	return "a shell command"
}

// collect hands output to the sinks until the reply comes.
func (c *Client) collect(k *call, out *sinks) (reply, error) {
	for {
		f, err := c.next(k)
		if err != nil {
			return reply{}, err
		}
		switch f.Type {
		case repDone:
			return decodeReply(f.Payload)
		case repStderr:
			out.write(true, f.Payload)
		default:
			out.write(false, f.Payload)
		}
		c.consumed(k, f)
	}
}

// feed sends standard input as far as the command reads it.
func (c *Client) feed(k *call, stdin io.Reader) {
	p := frames.NewPacket(frames.MaxData)
	for {
		n := k.credit.Take(frames.MaxData, k.over, c.done)
		if n == 0 {
			return
		}
		m, err := stdin.Read(p.Space(n))
		k.credit.GiveBack(n - m)
		if m > 0 {
			if c.w.SendPacket(reqData, k.id, p, m) != nil {
				return
			}
		} else {
			k.credit.GiveBack(frames.Cost)
		}
		if err != nil { // the command reads end of file, whatever the reason
			_ = c.w.Send(reqDataEnd, k.id, nil)
			return
		}
	}
}

// sinks are a command's writers. One that fails is not written to again. Only
// one goroutine writes, so that one writer can serve as both.
type sinks struct{ stdout, stderr io.Writer }

func (s *sinks) write(stderr bool, p []byte) {
	w := &s.stdout
	if stderr {
		w = &s.stderr
	}
	if *w == nil {
		return
	}
	if n, err := (*w).Write(p); err != nil || n < len(p) {
		*w = nil
	}
}

// note writes a message of ours where the command's own errors would go.
func (s *sinks) note(stderr bool, text string) { s.write(stderr, []byte(text)) }
