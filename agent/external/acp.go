package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/logs"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/sandbox"
)

const (
	acpName    = "acp"
	acpPrefix  = acpName + ":"
	acpOutput  = "acp.txt"   // what the command printed on its standard error
	acpJournal = "acp.jsonl" // what was said; logs.ACP reads it

	// greetLimit bounds the time for the first answer: a command that speaks another
	// protocol, or waits for somebody at a terminal, would use up the agent's time.
	greetLimit = 5 * time.Minute

	// authenticationRequired is the code of such an error.
	authenticationRequired = -32000
)

func acpEntry() agent.Entry {
	e := acpEntryOf(acpName, func(c agent.Config) string { return c.Text("run") })
	e.Settings = append([]agent.Setting{
		{Name: "run", Summary: "the command, run by `bash -c` in the sandbox as the task's agent user, which speaks the protocol at its standard input and output", Text: true, Required: true},
	}, e.Settings...)
	return e
}

// openACP makes the entry of a name that has the command in it: "acp:gemini --acp".
func openACP(name string) (agent.Entry, bool) {
	command, ok := strings.CutPrefix(name, acpPrefix)
	if !ok || strings.TrimSpace(command) == "" {
		return agent.Entry{}, false
	}
	return acpEntryOf(name, func(agent.Config) string { return command }), true
}

func acpEntryOf(name string, command func(agent.Config) string) agent.Entry {
	return agent.Entry{
		Name:    name,
		Summary: "runs a command of yours in the sandbox, which speaks the Agent Client Protocol",
		Output:  acpOutput,
		Gateway: true, UsesTools: true,
		Logs: logs.ACP,
		Settings: append([]agent.Setting{
			{Name: "install", Summary: "run before it, as root, within the agent's set-up time (360 seconds unless changed)", Text: true},
			agent.ShareSetting(),
			{Name: "login", Summary: "the id of the way to authenticate, of those that the agent offers; none is asked for unless given", Text: true},
			{Name: "mode", Summary: "the id of the mode of the session, of those that the agent has; its own default unless given", Text: true},
			{Name: "version", Summary: "recorded with the results", Text: true},
		}, agent.GatewaySettings()...),
		Sandboxed: func(c agent.Config) (agent.Agent, error) {
			return &acpAgent{
				name: name, command: command(c), install: c.Text("install"), login: c.Text("login"), mode: c.Text("mode"),
				version: c.Text("version"), vars: c.Env, model: c.Model, now: clock.Or(nil),
			}, nil
		},
	}
}

// acpAgent is an agent in the sandbox, of which this program is the client.
type acpAgent struct {
	name, command, install, login, mode, version, model string
	vars                                                []string
	now                                                 func() time.Time
}

var (
	_ agent.Agent       = (*acpAgent)(nil)
	_ agent.Provisioner = (*acpAgent)(nil)
)

// Info returns the name by which the agent was chosen and the configured version.
func (a *acpAgent) Info() agent.Info { return agent.Info{Name: a.name, Version: a.version} }

// Setup does what Provision does.
func (a *acpAgent) Setup(ctx context.Context, env agent.Env) error {
	if env.Provisioned {
		return nil
	}
	return a.Provision(ctx, env)
}

// Provision puts the list of MCP servers in place and runs the install text as root, as far
// as there are any.
func (a *acpAgent) Provision(ctx context.Context, env agent.Env) error {
	if err := env.UploadServers(ctx); err != nil {
		return err
	}
	if strings.TrimSpace(a.install) == "" {
		return nil
	}
	return env.Check(ctx, "install.txt", sandbox.Command{Shell: a.install, Env: env.Equipped(a.vars), User: "root"})
}

// Run starts the command, opens a session and prompts it with the instruction.
func (a *acpAgent) Run(ctx context.Context, env agent.Env, task agent.Task) (_ agent.Result, err error) {
	b := box{sb: env.Sandbox, user: env.User}
	workdir, err := b.workdir(ctx)
	if err != nil {
		return agent.Result{}, err
	}
	told, err := env.Tell(ctx, task, a.model)
	if err != nil {
		return agent.Result{}, err
	}
	log, err := newJournal(env, acpJournal, a.now)
	if err != nil {
		return agent.Result{}, err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	out, err := newPrinted(env, acpOutput)
	if err != nil {
		return agent.Result{}, err
	}
	defer func() { err = errors.Join(err, out.close()) }()
	t := &talk{agent: a, env: env, box: b, workdir: workdir, vars: append(env.Equipped(a.vars), told...), out: out}
	return agent.Result{}, t.run(ctx, log, task.Instruction)
}

// talk is one run of the command.
type talk struct {
	agent   *acpAgent
	env     agent.Env
	box     box
	workdir string
	vars    []string
	out     *printed

	wire   *wire
	client *client
	conn   *acp.ClientSideConnection
	// ended is closed when the command has ended; status and failed may then be read.
	ended  chan struct{}
	status sandbox.ExitStatus
	failed error
}

// run has the whole conversation. The command outlives ctx a little, so that it can be
// told that its time is up.
func (t *talk) run(ctx context.Context, log *journal, instruction string) error {
	alive, kill := context.WithCancelCause(context.WithoutCancel(ctx))
	defer kill(nil)
	stdin, toPeer := io.Pipe()
	var received io.Reader
	t.wire, received = newWire(alive, log, toPeer)
	t.client = newClient(alive, t.box, t.vars)
	t.conn = acp.NewClientSideConnection(t.client, t.wire.sent(), received)
	t.conn.SetLogger(slog.New(slog.DiscardHandler)) // it would print what the agent said
	t.ended = make(chan struct{})
	go func() {
		defer close(t.ended)
		t.status, t.failed = t.env.Sandbox.Exec(alive, sandbox.Command{
			Shell: t.agent.command, Env: t.vars, User: t.env.User, Stdin: stdin, Stdout: &t.wire.lines, Stderr: t.out,
		})
		t.wire.ended(func() { _ = stdin.CloseWithError(errEnded) })
	}()
	reason, err := t.converse(ctx, toPeer, instruction)
	early := t.wire.hungUp()
	_ = toPeer.Close()
	if !t.endsWithin(grace) {
		kill(errEnded)
		<-t.ended
	}
	kill(errEnded)
	_ = t.wire.received.Close()
	<-t.conn.Done()
	t.client.wait()
	dropped, acted := t.wire.counts()
	if dropped > 0 && t.env.Warn != nil {
		t.env.Warn("left out what the agent wrote besides its protocol: %s", console.Count(int(dropped), "line"))
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case t.client.failed() != nil:
		return t.client.failed()
	case err != nil:
		return t.explain(err, early)
	}
	return t.judge(reason, acted)
}

// errEnded is why what belongs to the command is ended with it.
var errEnded = errors.New("the agent's command has ended")

func (t *talk) endsWithin(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-t.ended:
		return true
	case <-timer.C:
		return false
	}
}

// callError is what became of a request.
type callError struct {
	method string
	err    error
}

func (e *callError) Error() string { return e.method + ": " + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// converse opens a session and prompts it. When ctx ends the session is cancelled, and the
// agent has a moment to say so; then nothing is sent to it any more.
func (t *talk) converse(ctx context.Context, toPeer io.Closer, instruction string) (acp.StopReason, error) {
	calls, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	opened := make(chan acp.SessionId, 1)
	defer context.AfterFunc(ctx, func() {
		select {
		case session := <-opened:
			go func() { _ = t.conn.Cancel(calls, acp.CancelNotification{SessionId: session}) }() // it may read nothing any more
			timer := time.NewTimer(grace)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-calls.Done():
			}
		default:
		}
		_ = toPeer.Close() // the connection may wait for it to read
		giveUp()
	})()
	session, err := t.open(ctx)
	if err != nil {
		return "", err
	}
	opened <- session
	r, err := t.conn.Prompt(calls, acp.PromptRequest{SessionId: session, Prompt: []acp.ContentBlock{acp.TextBlock(instruction)}})
	if err != nil {
		return "", &callError{"session/prompt", err}
	}
	return r.StopReason, nil
}

// open greets the agent and opens a session, until ctx ends.
func (t *talk) open(ctx context.Context) (acp.SessionId, error) {
	greeting, cancel := context.WithTimeoutCause(ctx, greetLimit, fmt.Errorf("there is no answer after %s", greetLimit))
	defer cancel()
	hello, err := t.conn.Initialize(greeting, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber,
		ClientInfo:      &acp.Implementation{Name: "proctor", Version: version.Current().Version},
		ClientCapabilities: acp.ClientCapabilities{
			Fs: acp.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}, Terminal: true,
		},
	})
	if err != nil {
		return "", &callError{"initialize", err}
	}
	if hello.ProtocolVersion != acp.ProtocolVersionNumber {
		return "", protocolErrorf("the agent speaks version %d of the Agent Client Protocol, and proctor version %d", hello.ProtocolVersion, acp.ProtocolVersionNumber)
	}
	if t.agent.login != "" {
		if _, err := t.conn.Authenticate(ctx, acp.AuthenticateRequest{MethodId: t.agent.login}); err != nil {
			return "", &callError{"authenticate", err}
		}
	}
	servers, err := t.servers(hello.AgentCapabilities.McpCapabilities)
	if err != nil {
		return "", err
	}
	s, err := t.conn.NewSession(ctx, acp.NewSessionRequest{Cwd: t.workdir, McpServers: servers})
	if err != nil {
		return "", &callError{"session/new", err}
	}
	if t.agent.mode != "" {
		if _, err := t.conn.SetSessionMode(ctx, acp.SetSessionModeRequest{SessionId: s.SessionId, ModeId: acp.SessionModeId(t.agent.mode)}); err != nil {
			return "", &callError{"session/set_mode", err}
		}
	}
	return s.SessionId, nil
}

// servers are the task's MCP servers, as far as the agent can use them.
func (t *talk) servers(can acp.McpCapabilities) ([]acp.McpServer, error) {
	servers := []acp.McpServer{}
	for _, s := range t.env.MCPServers {
		switch {
		case s.Transport == "stdio":
			servers = append(servers, acp.McpServer{Stdio: &acp.McpServerStdio{Name: s.Name, Command: s.Command, Args: append([]string{}, s.Args...), Env: []acp.EnvVariable{}}})
		case s.Transport == "sse" && can.Sse:
			servers = append(servers, acp.McpServer{Sse: &acp.McpServerSseInline{Name: s.Name, Type: "sse", Url: s.URL, Headers: []acp.HttpHeader{}}})
		case s.Transport == "streamable-http" && can.Http:
			servers = append(servers, acp.McpServer{Http: &acp.McpServerHttpInline{Name: s.Name, Type: "http", Url: s.URL, Headers: []acp.HttpHeader{}}})
		case s.Required:
			return nil, protocolErrorf("the agent cannot use the MCP server %s, which has all that it could do: it does not speak %s", s.Name, s.Transport)
		default:
			if t.env.Warn != nil {
				t.env.Warn("the agent cannot use the MCP server %s: it does not speak %s", s.Name, s.Transport)
			}
		}
	}
	return servers, nil
}

// explain makes of a request that failed the error of the agent. early: the command ended
// before it answered.
func (t *talk) explain(err error, early bool) error {
	if _, typed := errors.AsType[*exception.Error](err); typed {
		return err
	}
	refused, _ := errors.AsType[*acp.RequestError](err)
	switch {
	case early && t.failed != nil:
		return fmt.Errorf("running the agent's command: %w", t.failed)
	case refused != nil && refused.Code == authenticationRequired:
		return exception.Errorf("AuthenticationError", "the agent wants to be authenticated: %s", spelled(err))
	case early && t.status.Code != 0:
		return &agent.ExitError{Command: t.agent.command, Code: t.status.Code, Output: t.out.end()}
	case early:
		return protocolErrorf("the agent's command ended before it answered %s", spelled(err))
	}
	typ := logs.FailureType(spelled(err))
	if typ == "" {
		typ = protocolError
	}
	return exception.Errorf(typ, "the agent failed: %s", spelled(err))
}

// spelled is an error with all that the agent said of it, bounded.
func spelled(err error) string {
	text := err.Error()
	if refused, ok := errors.AsType[*acp.RequestError](err); ok {
		text = refused.Message
		if data, err := json.Marshal(refused.Data); err == nil && refused.Data != nil {
			text += " " + string(data)
		}
		if call, ok := errors.AsType[*callError](err); ok {
			text = call.method + ": " + text
		}
	}
	if len(text) > errorOutput {
		text = strings.ToValidUTF8(text[:errorOutput], "") + "…"
	}
	return text
}

// judge says what it means that the agent stopped. Whatever it did before is verified.
func (t *talk) judge(reason acp.StopReason, acted bool) error {
	switch {
	case reason == acp.StopReasonEndTurn, reason == acp.StopReasonMaxTurnRequests, acted:
		if reason != acp.StopReasonEndTurn && t.env.Warn != nil {
			t.env.Warn("the agent stopped early: %.100q", string(reason))
		}
		return nil
	case reason == acp.StopReasonRefusal:
		return exception.Errorf("ContentPolicyViolationError", "the agent refused the task")
	case reason == acp.StopReasonMaxTokens:
		return exception.Errorf("OutputLengthExceededError", "the agent had no tokens left before it did anything")
	}
	return protocolErrorf("the agent stopped before it did anything: %.100q", string(reason))
}
