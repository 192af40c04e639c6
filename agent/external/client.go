package external

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	acp "github.com/coder/acp-go-sdk"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
)

// maxTerminals is how many terminals an agent can have that it has not released.
const maxTerminals = 32

// client carries out what an agent asks for, in the sandbox and as its user.
type client struct {
	ctx    context.Context // of all commands
	box    box
	vars   []string
	health health
	runs   sync.WaitGroup

	mu        sync.Mutex // guards what follows
	closed    bool
	failure   error
	next      int
	terminals map[string]*terminal
}

var _ acp.Client = (*client)(nil)

func newClient(ctx context.Context, b box, vars []string) *client {
	return &client{ctx: ctx, box: b, vars: vars, terminals: map[string]*terminal{}}
}

// wait waits for what is under way, whose context must have ended. Nothing begins then.
func (c *client) wait() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.runs.Wait()
}

// enter begins something, which ends with runs.Done.
func (c *client) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errEnded
	}
	c.runs.Add(1)
	return nil
}

// failed is the error of a sandbox that does not work any more.
func (c *client) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

func (c *client) note(ctx context.Context, err error) error {
	if c.health.note(ctx, err) {
		c.mu.Lock()
		c.failure = err
		c.mu.Unlock()
	}
	return err
}

// tell makes an error one that the agent is told.
func tell(err error) error {
	if err == nil {
		return nil
	}
	return &acp.RequestError{Code: -32603, Message: err.Error()}
}

// RequestPermission allows whatever is asked for: it is done in the sandbox.
func (c *client) RequestPermission(_ context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	for _, kind := range []acp.PermissionOptionKind{acp.PermissionOptionKindAllowAlways, acp.PermissionOptionKindAllowOnce} {
		for _, o := range r.Options {
			if o.Kind == kind {
				return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(o.OptionId)}, nil
			}
		}
	}
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
}

// SessionUpdate does nothing: what is told is written down before it comes here.
func (c *client) SessionUpdate(context.Context, acp.SessionNotification) error { return nil }

// ReadTextFile reads a file, or lines of it.
func (c *client) ReadTextFile(ctx context.Context, r acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	if err := c.enter(); err != nil {
		return acp.ReadTextFileResponse{}, err
	}
	defer c.runs.Done()
	data, err := c.box.read(ctx, r.Path)
	if c.note(ctx, err) != nil {
		return acp.ReadTextFileResponse{}, tell(err)
	}
	if !utf8.Valid(data) {
		return acp.ReadTextFileResponse{}, tell(refusedf("reading %q: it is no UTF-8", r.Path))
	}
	return acp.ReadTextFileResponse{Content: someLines(string(data), r.Line, r.Limit)}, nil
}

// someLines are lines of a text, from the first one, which is 1, and at most limit.
func someLines(text string, first, limit *int) string {
	if first == nil && limit == nil {
		return text
	}
	var out strings.Builder
	from := 1
	if first != nil {
		from = max(*first, 1)
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if n < from {
			continue
		}
		if limit != nil && n-from >= *limit {
			break
		}
		out.WriteString(line)
	}
	return out.String()
}

// WriteTextFile writes a file, whose directory is made where there is none.
func (c *client) WriteTextFile(ctx context.Context, r acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	if err := c.enter(); err != nil {
		return acp.WriteTextFileResponse{}, err
	}
	defer c.runs.Done()
	err := c.box.write(ctx, r.Path, []byte(r.Content), "")
	return acp.WriteTextFileResponse{}, tell(c.note(ctx, err))
}

// terminal is a command that an agent runs.
type terminal struct {
	kill  context.CancelCauseFunc
	ended chan struct{}

	mu     sync.Mutex // guards what follows, until the command has ended
	out    *bounded.Tail
	status sandbox.ExitStatus
	killed bool
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Write(p)
}

// CreateTerminal starts a command: a program with arguments, or without any the text of a
// shell, which is what agents send.
func (c *client) CreateTerminal(_ context.Context, r acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) { //nolint:contextcheck // the command outlives the request
	cmd := sandbox.Command{Env: append([]string{}, c.vars...)}
	if cmd.Shell = r.Command; len(r.Args) > 0 {
		cmd.Shell, cmd.Argv = "", append([]string{r.Command}, r.Args...)
	}
	if r.Cwd != nil && *r.Cwd != "" {
		if cmd.Dir = *r.Cwd; !path.IsAbs(cmd.Dir) {
			return acp.CreateTerminalResponse{}, tell(refusedf("%q is not an absolute path", cmd.Dir))
		}
	}
	for _, v := range r.Env {
		if v.Name == "" || strings.ContainsRune(v.Name, '=') {
			return acp.CreateTerminalResponse{}, tell(refusedf("%.100q is not the name of a variable", v.Name))
		}
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	if err := checkCommand(cmd); err != nil {
		return acp.CreateTerminalResponse{}, tell(err)
	}
	limit := maxOutput
	if r.OutputByteLimit != nil {
		limit = max(0, min(*r.OutputByteLimit, maxOutput))
	}
	t := &terminal{out: bounded.NewTail(limit), ended: make(chan struct{})}
	cmd.User, cmd.Stdout = c.box.user, t

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return acp.CreateTerminalResponse{}, errEnded
	}
	if len(c.terminals) >= maxTerminals {
		return acp.CreateTerminalResponse{}, tell(refusedf("there are %d terminals, and may be no more: release those that are not needed", maxTerminals))
	}
	c.next++
	id := "terminal-" + strconv.Itoa(c.next)
	c.terminals[id] = t
	ctx, kill := context.WithCancelCause(c.ctx)
	t.kill = kill
	c.runs.Go(func() { c.runTerminal(ctx, t, cmd) })
	return acp.CreateTerminalResponse{TerminalId: id}, nil
}

func (c *client) runTerminal(ctx context.Context, t *terminal, cmd sandbox.Command) {
	status, err := c.box.sb.Exec(ctx, cmd)
	_ = c.note(ctx, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status, t.killed = status, err != nil
	if err != nil && ctx.Err() == nil {
		_, _ = fmt.Fprintf(writerFunc(t.out.Write), "%v", err)
	}
	t.kill(nil)
	close(t.ended)
}

func (c *client) terminal(id string) (*terminal, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.terminals[id]; t != nil {
		return t, nil
	}
	return nil, tell(refusedf("there is no terminal %.100q", id))
}

// exit is how a terminal's command ended; it must have.
func (t *terminal) exit() (code *int, signal *string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.killed {
		return nil, new("SIGTERM")
	}
	return &t.status.Code, nil
}

// TerminalOutput is what a terminal's command has printed so far, the end of it.
func (c *client) TerminalOutput(_ context.Context, r acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error) {
	t, err := c.terminal(r.TerminalId)
	if err != nil {
		return acp.TerminalOutputResponse{}, err
	}
	var answer acp.TerminalOutputResponse
	select {
	case <-t.ended:
		code, signal := t.exit()
		answer.ExitStatus = &acp.TerminalExitStatus{ExitCode: code, Signal: signal}
	default:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	answer.Output, answer.Truncated = strings.ToValidUTF8(string(t.out.Bytes()), "\ufffd"), t.out.Dropped() > 0
	return answer, nil
}

// WaitForTerminalExit waits until a terminal's command has ended.
func (c *client) WaitForTerminalExit(ctx context.Context, r acp.WaitForTerminalExitRequest) (acp.WaitForTerminalExitResponse, error) {
	t, err := c.terminal(r.TerminalId)
	if err != nil {
		return acp.WaitForTerminalExitResponse{}, err
	}
	select {
	case <-t.ended:
	case <-ctx.Done():
		return acp.WaitForTerminalExitResponse{}, ctx.Err()
	}
	code, signal := t.exit()
	return acp.WaitForTerminalExitResponse{ExitCode: code, Signal: signal}, nil
}

// KillTerminal ends a terminal's command, whose output stays.
func (c *client) KillTerminal(_ context.Context, r acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
	t, err := c.terminal(r.TerminalId)
	if err == nil {
		t.kill(errTerminal)
	}
	return acp.KillTerminalResponse{}, err
}

// ReleaseTerminal ends a terminal's command and forgets it.
func (c *client) ReleaseTerminal(_ context.Context, r acp.ReleaseTerminalRequest) (acp.ReleaseTerminalResponse, error) {
	t, err := c.terminal(r.TerminalId)
	if err == nil {
		t.kill(errTerminal)
		c.mu.Lock()
		delete(c.terminals, r.TerminalId)
		c.mu.Unlock()
	}
	return acp.ReleaseTerminalResponse{}, err
}

var errTerminal = errors.New("the agent has ended the command")
