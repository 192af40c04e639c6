//go:build unix

package external_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	acp "github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/external"
	"github.com/proctor-run/proctor/agent/logs"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// partVariable says which of the agents that speak the protocol this program is.
const partVariable = "PROCTOR_TEST_ACP"

// playACP is an agent that speaks the protocol.
func playACP(*peer) int {
	p := &player{part: os.Getenv(partVariable), cancelled: make(chan struct{})}
	in, feed := io.Pipe()
	p.conn = acp.NewAgentSideConnection(p, os.Stdout, in)
	p.conn.SetLogger(slog.New(slog.DiscardHandler))
	go func() { // reads nothing before the connection is known
		_, _ = io.Copy(feed, os.Stdin)
		_ = feed.Close()
	}()
	<-p.conn.Done()
	return 0
}

type player struct {
	part      string
	conn      *acp.AgentSideConnection
	cancelled chan struct{}
	session   acp.NewSessionRequest
	did       []string
}

func (p *player) Initialize(_ context.Context, r acp.InitializeRequest) (acp.InitializeResponse, error) {
	switch p.part {
	case "exits":
		fmt.Fprintln(os.Stderr, "it broke")
		os.Exit(9)
	case "leaves":
		os.Exit(0)
	}
	fmt.Println("a line that is not a message")
	fmt.Println(strings.Repeat("x", 9<<20))
	p.did = append(p.did, fmt.Sprint(r.ProtocolVersion, r.ClientCapabilities.Terminal, r.ClientCapabilities.Fs))
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber, AgentInfo: &acp.Implementation{Name: "player", Version: "3"},
		AgentCapabilities: acp.AgentCapabilities{McpCapabilities: acp.McpCapabilities{Http: true}}, AuthMethods: []acp.AuthMethod{},
	}, nil
}

func (p *player) Authenticate(_ context.Context, r acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	p.did = append(p.did, "authenticated by "+string(r.MethodId))
	return acp.AuthenticateResponse{}, nil
}

func (p *player) NewSession(_ context.Context, r acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	if p.part == "locked" {
		return acp.NewSessionResponse{}, acp.NewAuthRequired(map[string]any{"hint": "log in"})
	}
	p.session = r
	return acp.NewSessionResponse{SessionId: "s1"}, nil
}

func (p *player) SetSessionMode(_ context.Context, r acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	p.did = append(p.did, "mode "+string(r.ModeId))
	return acp.SetSessionModeResponse{}, nil
}

func (p *player) Cancel(context.Context, acp.CancelNotification) error {
	close(p.cancelled)
	return nil
}

func (p *player) Prompt(ctx context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	stop := func(why acp.StopReason) (acp.PromptResponse, error) { return acp.PromptResponse{StopReason: why}, nil }
	switch p.part {
	case "refuses":
		return stop(acp.StopReasonRefusal)
	case "cut":
		return stop(acp.StopReasonMaxTokens)
	case "worked and cut":
		_, err := p.conn.CreateTerminal(ctx, acp.CreateTerminalRequest{SessionId: "s1", Command: "true"})
		p.must(err)
		return stop(acp.StopReasonMaxTokens)
	case "limited":
		return acp.PromptResponse{}, &acp.RequestError{Code: -32603, Message: "Internal error", Data: map[string]any{"details": "429 Too Many Requests"}}
	case "patient":
		_, _ = p.conn.CreateTerminal(ctx, acp.CreateTerminalRequest{SessionId: "s1", Command: "touch begun; exec sleep 1000"})
		<-p.cancelled
		fmt.Fprint(os.Stderr, "cancelled")
		return stop(acp.StopReasonCancelled)
	case "stubborn":
		_, _ = p.conn.CreateTerminal(ctx, acp.CreateTerminalRequest{SessionId: "s1", Command: "touch begun; exec sleep 1000"})
		select {}
	}
	p.work(ctx, r)
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn, Usage: &acp.Usage{InputTokens: 10, CachedReadTokens: new(4), OutputTokens: 3, TotalTokens: 17}}, nil
}

func (p *player) must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
	}
}

// work asks for all that a client can do, and says what came of it.
func (p *player) work(ctx context.Context, r acp.PromptRequest) {
	note := func(format string, args ...any) { p.did = append(p.did, fmt.Sprintf(format, args...)) }
	update := func(u acp.SessionUpdate) {
		p.must(p.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: "s1", Update: u}))
	}
	note("%s in %s with %d servers", r.Prompt[0].Text.Text, p.session.Cwd, len(p.session.McpServers))
	update(acp.UpdateAgentThoughtText("let me "))
	update(acp.UpdateAgentThoughtText("see"))
	update(acp.UpdateAgentMessageText("I write "))
	update(acp.UpdateAgentMessageText("it"))
	update(acp.StartToolCall("c1", "write x", acp.WithStartKind(acp.ToolKindEdit), acp.WithStartRawInput(map[string]any{"path": "x"})))
	allowed, err := p.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: "s1", ToolCall: acp.ToolCallUpdate{ToolCallId: "c1"},
		Options: []acp.PermissionOption{{Kind: "reject_once", OptionId: "no", Name: "no"}, {Kind: "allow_once", OptionId: "once", Name: "once"}, {Kind: "allow_always", OptionId: "yes", Name: "yes"}},
	})
	p.must(err)
	note("allowed %s", allowed.Outcome.Selected.OptionId)
	dir := p.session.Cwd + "/sub"
	_, err = p.conn.WriteTextFile(ctx, acp.WriteTextFileRequest{SessionId: "s1", Path: dir + "/x", Content: "a\nb\nc\nsk-0123456789"})
	p.must(err)
	update(acp.UpdateToolCall("c1", acp.WithUpdateStatus(acp.ToolCallStatusCompleted), acp.WithUpdateContent([]acp.ToolCallContent{acp.ToolContent(acp.TextBlock("written"))})))
	read, err := p.conn.ReadTextFile(ctx, acp.ReadTextFileRequest{SessionId: "s1", Path: dir + "/x", Line: new(2), Limit: new(2)})
	p.must(err)
	note("read %q", read.Content)
	_, err = p.conn.ReadTextFile(ctx, acp.ReadTextFileRequest{SessionId: "s1", Path: dir + "/missing"})
	note("missing: %v", err != nil && strings.Contains(err.Error(), "reading "))
	term, err := p.conn.CreateTerminal(ctx, acp.CreateTerminalRequest{SessionId: "s1", Command: "sh", Args: []string{"-c", "echo $A $SANDBOX_USER; exit 3"}, Env: []acp.EnvVariable{{Name: "A", Value: "b"}}, Cwd: &dir})
	p.must(err)
	exit, err := p.conn.WaitForTerminalExit(ctx, acp.WaitForTerminalExitRequest{SessionId: "s1", TerminalId: term.TerminalId})
	p.must(err)
	out, err := p.conn.TerminalOutput(ctx, acp.TerminalOutputRequest{SessionId: "s1", TerminalId: term.TerminalId})
	p.must(err)
	note("terminal %d %q %v %d", *exit.ExitCode, out.Output, out.Truncated, *out.ExitStatus.ExitCode)
	_, err = p.conn.ReleaseTerminal(ctx, acp.ReleaseTerminalRequest{SessionId: "s1", TerminalId: term.TerminalId})
	p.must(err)
	_, err = p.conn.TerminalOutput(ctx, acp.TerminalOutputRequest{SessionId: "s1", TerminalId: term.TerminalId})
	note("released: %v", err != nil)
	long, err := p.conn.CreateTerminal(ctx, acp.CreateTerminalRequest{SessionId: "s1", Command: "echo begun; exec sleep 1000", OutputByteLimit: new(3)})
	p.must(err)
	for out.Output = ""; out.Output != "un\n"; {
		out, err = p.conn.TerminalOutput(ctx, acp.TerminalOutputRequest{SessionId: "s1", TerminalId: long.TerminalId})
		p.must(err)
	}
	_, err = p.conn.KillTerminal(ctx, acp.KillTerminalRequest{SessionId: "s1", TerminalId: long.TerminalId})
	p.must(err)
	exit, err = p.conn.WaitForTerminalExit(ctx, acp.WaitForTerminalExitRequest{SessionId: "s1", TerminalId: long.TerminalId})
	p.must(err)
	note("killed %v %s %v", exit.ExitCode == nil, *exit.Signal, out.Truncated)
	fmt.Fprint(os.Stderr, strings.Join(p.did, "\n"))
	update(acp.UpdateAgentMessageText("done"))
}

// The rest of what an agent is.

func (p *player) CloseSession(context.Context, acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	return acp.CloseSessionResponse{}, nil
}

func (p *player) ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	return acp.ListSessionsResponse{}, nil
}

func (p *player) ResumeSession(context.Context, acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	return acp.ResumeSessionResponse{}, nil
}

func (p *player) SetSessionConfigOption(context.Context, acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, nil
}

// runACP runs this program in a fake sandbox as an agent.
func runACP(ctx context.Context, t *testing.T, part string, change func(*agent.Env), settings ...any) (logDir string, warned []string, err error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sb, _ := newSandbox(ctx, t)
	env := agent.Env{
		Sandbox: sb, User: "somebody", LogDir: t.TempDir(), OutputLimit: 1 << 20,
		Redact: func(w io.Writer) io.WriteCloser {
			return redact.New([]redact.Secret{{Name: "KEY", Value: "sk-0123456789"}}).Writer(w)
		},
		Warn: func(format string, args ...any) { warned = append(warned, fmt.Sprintf(format, args...)) },
	}
	if change != nil {
		change(&env)
	}
	c := agent.Config{Name: "acp", Model: "p/m", Env: []string{playVariable + "=acp", partVariable + "=" + part}}
	a := newAgent(t, c, append([]any{"run", "exec " + quoted(exe)}, settings...)...)
	if err := a.Setup(ctx, env); err != nil {
		t.Fatal(err)
	}
	_, err = a.Run(ctx, env, agent.Task{Instruction: "do it"})
	return env.LogDir, warned, err
}

func TestACP(t *testing.T) {
	t.Parallel()
	dir, warned, err := runACP(t.Context(), t, "works", func(e *agent.Env) {
		e.MCPServers = []agent.MCPServer{
			{Name: "a", Transport: "stdio", Command: "c"}, {Name: "b", Transport: "sse", URL: "u"}, {Name: "c", Transport: "streamable-http", URL: "u"},
		}
	}, "login", "key", "mode", "yolo", "install", "echo installed")
	if err != nil {
		t.Fatal(err)
	}
	said := file(t, dir, "acp.txt")
	_, cwd, _ := strings.Cut(said, "do it in ")
	cwd, _, _ = strings.Cut(cwd, " with")
	want := `1 true {map[] true true}
authenticated by key
mode yolo
do it in ` + cwd + ` with 2 servers
allowed yes
read "b\nc\n"
missing: true
terminal 3 "b somebody\n" false 3
released: true
killed true SIGTERM true`
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("what came of it (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"the agent cannot use the MCP server b: it does not speak sse", "left out what the agent wrote besides its protocol: 2 lines"}, warned); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if file(t, dir, "install.txt") != "installed\n" || strings.Contains(file(t, dir, "acp.jsonl"), "sk-0123456789") {
		t.Error("the log of the installation, or what is redacted")
	}
	checkTrajectory(t, dir)
}

// TestACPWithoutServer: an agent that cannot use the only server that it needs fails.
func TestACPWithoutServer(t *testing.T) {
	t.Parallel()
	dir, _, err := runACP(t.Context(), t, "works", func(e *agent.Env) {
		e.MCPServers = []agent.MCPServer{{Name: "task", Transport: "sse", URL: "u", Required: true}}
	}, "login", "key")
	if err == nil || exception.TypeOf(err) != "AgentProtocolError" || !strings.Contains(err.Error(), "cannot use the MCP server task") {
		t.Errorf("the run ended with %v", err)
	}
	if said := file(t, dir, "acp.txt"); strings.Contains(said, "do it") {
		t.Errorf("the agent was asked to work: %s", said)
	}
}

func checkTrajectory(t *testing.T, dir string) {
	t.Helper()
	made, err := logs.Read("acp", logs.ACP, logs.Input{Dir: dir, Model: "p/m"})
	if err != nil || made.Trajectory == nil || made.Failure != "" || len(made.Truncated) > 0 {
		t.Fatalf("%+v, %v", made, err)
	}
	var steps []string
	for _, s := range made.Trajectory.Steps {
		line := string(s.Source) + ": " + s.Message.Text
		if s.ReasoningContent != nil {
			line += " (" + *s.ReasoningContent + ")"
		}
		for i, c := range s.ToolCalls {
			line += fmt.Sprintf(" %s(%d) = %s", c.FunctionName, c.Arguments.Len(), s.Observation.Results[i].Content.Text)
		}
		steps = append(steps, line)
	}
	if diff := cmp.Diff([]string{"user: do it", "agent: I write it (let me see) edit(1) = written", "agent: done"}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if a := made.Trajectory.Agent; a.Name != "player" || a.Version != "3" || made.InputTokens.String() != "14" || made.OutputTokens.String() != "3" {
		t.Errorf("%+v, %v, %v", a, made.InputTokens, made.OutputTokens)
	}
}

func TestACPFailures(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		"exits": "NonZeroAgentExitCodeError", "leaves": "AgentProtocolError", "locked": "AuthenticationError", "limited": "RateLimitError",
		"refuses": "ContentPolicyViolationError", "cut": "OutputLengthExceededError", "worked and cut": "",
	} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			_, _, err := runACP(t.Context(), t, part, nil)
			got := ""
			if typed, ok := errors.AsType[*exception.Error](err); ok {
				got = typed.Type
			}
			if exit, ok := errors.AsType[*agent.ExitError](err); ok && exit.Code == 9 && exit.Output == "it broke\n" {
				got = exit.ErrorType()
			}
			if got != want || want == "" && err != nil {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// TestACPDeadline: an agent is told that its time is up, and ended if it does not end.
func TestACPDeadline(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{"patient": "cancelled", "stubborn": ""} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			over := errors.New("the time is up")
			ctx, cancel := context.WithCancelCause(t.Context())
			dir, _, err := runACP(ctx, t, part, func(e *agent.Env) {
				e.Sandbox = &noting{Sandbox: e.Sandbox, of: "touch begun", do: func() { cancel(over) }}
			})
			if !errors.Is(err, over) || file(t, dir, "acp.txt") != want {
				t.Errorf("got %v, %q", err, file(t, dir, "acp.txt"))
			}
		})
	}
}

// TestACPName: the command may be in the agent's name.
func TestACPName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"acp:x --acp": true, "acp: ": false, "acp:": false, "acpx": false} {
		e, ok := external.Agents().Find(name)
		if ok != want || ok && e.Name != name {
			t.Errorf("%q: %v, %q", name, ok, e.Name)
		}
	}
	if err := external.Agents().Check(agent.Config{Name: "acp:x", Settings: cube.Pairs("run", "y")}, false); err == nil {
		t.Error("there are two commands")
	}
	if names := external.Agents().Names(); len(names) != 2 {
		t.Errorf("names %q", names)
	}
}

// asks sends many requests, reads the answers to them, and ends.
func asks(ctx context.Context, p *fake.Process) (int, error) {
	go func() { _, _ = io.Copy(io.Discard, p.Stdin) }()
	const request = `{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/x"}}` + "\n"
	return fake.Print(strings.Repeat(request, 200))(ctx, p)
}

// TestACPBounds has an agent that prints what is no message, without an end, and one that
// repeats what it is told.
func TestACPBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   fake.Handler
		want string
	}{
		"many lines": {fake.Flood(8 << 20), "AgentProtocolError"},
		"garbage":    {fake.Garbage(8<<20, 1), "AgentProtocolError"},
		"echo":       {fake.Cat(), "AgentProtocolError"},
		"objects":    {fake.Print(strings.Repeat(`{"id":null,"method":5,"params":[]}`+"\n"+`{"id":{"a":1},"result":1}`+"\n"+`{"method":"x"}`+"\n"+`{}`+"\n", 1000)), "AgentProtocolError"},
		"requests":   {asks, "AgentProtocolError"},
		"refused":    {fake.Refuse("no such user"), "NonZeroAgentExitCodeError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{fake.On("agent", c.do), fake.On("pwd", fake.Print("/\n")), fake.Always()}})
			defer fake.Verify(t, b)
			sb, err := b.Create(t.Context(), sandbox.Spec{Name: "x"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = sb.Destroy(t.Context()) }()
			dir := t.TempDir()
			_, err = newAgent(t, agent.Config{Name: "acp"}, "run", "agent").Run(t.Context(), agent.Env{Sandbox: sb, LogDir: dir, OutputLimit: 1 << 16}, agent.Task{})
			var typed interface{ ErrorType() string }
			if !errors.As(err, &typed) || typed.ErrorType() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if info, err := os.Stat(dir + "/acp.jsonl"); err != nil || info.Size() > 1<<16+200 {
				t.Errorf("the journal: %v, %v", info, err)
			}
		})
	}
}
