//go:build unix

package external_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/sandbox"
)

// parts are the agents that this program can be.
var parts = map[string]func(*peer) int{
	"worker":    playWorker,
	"crossed":   playCrossed,
	"nonsense":  playNonsense,
	"endless":   playEndless,
	"stubborn":  playStubborn,
	"variables": playVariables,
	"acp":       playACP,
	"failing":   func(*peer) int { fmt.Fprintln(os.Stderr, "it broke: sk-0123456789"); return 7 },
	"mute":      func(*peer) int { return 0 },
	"lingering": func(p *peer) int {
		p.say(map[string]any{"type": "done"})
		for p.hear() != nil {
		}
		return 5 // is done by now
	},
}

// run lets this program be an agent, and returns the sandbox's directory and the log one.
func run(ctx context.Context, t *testing.T, part string, task agent.Task, change func(*agent.Env)) (agent.Result, string, string, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sb, dir := newSandbox(ctx, t)
	logDir := t.TempDir()
	env := agent.Env{
		Sandbox: sb, User: "somebody", LogDir: logDir, OutputLimit: 1 << 20,
		Redact: func(w io.Writer) io.WriteCloser {
			return redact.New([]redact.Secret{{Name: "KEY", Value: "sk-0123456789"}}).Writer(w)
		},
		Lookup: func(name string) (string, bool) { return "of-" + name, name == "HOME" || name == "OTHER" },
	}
	if change != nil {
		change(&env)
	}
	a := newAgent(t, agent.Config{Name: "external", Model: "p/m", Env: []string{playVariable + "=" + part, "KEY=sk-0123456789"}}, "run", "exec "+quoted(exe))
	if err := a.Setup(ctx, env); err != nil {
		t.Fatal(err)
	}
	result, err := a.Run(ctx, env, task)
	return result, dir, logDir, err
}

func playWorker(p *peer) int {
	start := p.hear()
	fmt.Fprintln(os.Stderr, start["instruction"], start["step"], start["model"], start["deadline"], start["skills_dir"], start["mcp_servers"], start["log_dir"] != "")
	show := func(m map[string]any) {
		delete(m, "id")
		fmt.Fprintln(os.Stderr, m)
	}
	show(p.ask("exec", map[string]any{"command": "echo $A $SANDBOX_USER; pwd; exit 3", "env": map[string]string{"A": "b"}, "cwd": "/"}))
	show(p.ask("write", map[string]any{"path": "sub/x", "content": "sk-0123456789ü", "mode": "0750"}))
	show(p.ask("read", map[string]any{"path": "sub/x"}))
	show(p.ask("write", map[string]any{"path": "raw", "content_base64": base64.StdEncoding.EncodeToString([]byte{0xff, 0})}))
	show(p.ask("read", map[string]any{"path": "raw"}))
	m := p.ask("read", map[string]any{"path": "missing"})
	fmt.Fprintln(os.Stderr, m["type"], strings.HasPrefix(fmt.Sprint(m["message"]), `reading "missing": `))
	m = p.ask("exec", map[string]any{"command": "head -c 3000000 /dev/zero | tr '\\0' x"})
	out := fmt.Sprint(m["output"])
	fmt.Fprintln(os.Stderr, len(out) < 1100000, strings.Contains(out, "[proctor: "), strings.HasSuffix(out, "xx"))
	show(p.ask("exec", map[string]any{"command": "exec sleep 60", "timeout_sec": 0.2}))
	p.say(map[string]any{"type": "usage", "input_tokens": 5, "cached_tokens": 2, "output_tokens": 1, "cost_usd": 0.25})
	p.say(map[string]any{"type": "usage", "input_tokens": 5, "cost_usd": 0.25})
	p.say(map[string]any{"type": "done"})
	return 0
}

func TestWorker(t *testing.T) {
	t.Parallel()
	deadline := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	result, dir, logs, err := run(t.Context(), t, "worker", agent.Task{Instruction: "do", Step: "one", Deadline: deadline}, func(e *agent.Env) {
		e.SkillsDir = "/s"
		e.MCPServers = []agent.MCPServer{{Name: "a", Transport: "stdio", Command: "c"}, {Name: "b", Transport: "sse", URL: "u"}}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `do one p/m 2030-01-02T03:04:05Z /s [map[args:[] command:c name:a transport:stdio] map[name:b transport:sse url:u]] true
map[exit_code:3 output:b somebody
/
 timed_out:false type:result]
map[type:written]
map[content:[REDACTED:KEY]ü type:content]
map[type:written]
map[content_base64:/wA= type:content]
error true
true true true
map[exit_code:143 output: timed_out:true type:result]
`
	if diff := cmp.Diff(want, file(t, logs, "external.txt")); diff != "" {
		t.Errorf("what it was told (-want +got):\n%s", diff)
	}
	if *result.InputTokens != 10 || *result.CacheTokens != 2 || *result.OutputTokens != 1 || *result.CostUSD != 0.5 {
		t.Errorf("used %+v", result)
	}
	info, err := os.Stat(filepath.Join(dir, "sub", "x"))
	if err != nil || info.Mode().Perm() != 0o750 || file(t, dir, "sub/x") != "sk-0123456789ü" {
		t.Errorf("the file: %v, %v", info, err)
	}
	said := file(t, logs, "external.jsonl")
	if strings.Contains(said, "sk-0123456789") || !strings.Contains(said, `"from":"proctor","message":{"deadline":"2030`) || !strings.Contains(said, `{"type":"done"}`) {
		t.Errorf("the journal:\n%s", said)
	}
}

// file is the text of a file.
func file(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// playCrossed has two requests under way, of which neither can end without the other: who
// opens a pipe waits for its other end.
func playCrossed(p *peer) int {
	p.hear()
	p.say(map[string]any{"id": "first", "type": "exec", "timeout_sec": 300, "command": "mkfifo pipe; read x < pipe"})
	p.say(map[string]any{"id": "second", "type": "exec", "timeout_sec": 300, "command": "until [ -p pipe ]; do sleep 0.01; done; echo x > pipe"})
	for range 2 {
		m := p.hear()
		fmt.Fprint(os.Stderr, m["id"], m["exit_code"], " ")
	}
	return 0
}

func TestSeveralAtOnce(t *testing.T) {
	t.Parallel()
	_, _, logs, err := run(t.Context(), t, "crossed", agent.Task{}, nil)
	if got := file(t, logs, "external.txt"); err != nil || got != "second0 first0 " && got != "first0 second0 " {
		t.Errorf("got %q, %v", got, err)
	}
}

func playNonsense(p *peer) int {
	p.hear()
	for _, line := range []string{
		"nonsense", "[]", `{"type":"exec"}`, `{"type":"exec","id":{},"command":"x"}`, `{"id":1,"type":"exec","command":" "}`, `{"id":2,"type":"shoot"}`,
		`{"id":3,"type":"write","path":"x"}`, `{"type":"usage","input_tokens":-1}`, `{"type":"usage","cost_usd":1e300}`, `{"type":"usage","input_tokens":"many"}`,
	} {
		fmt.Println(line)
		m := p.hear()
		fmt.Fprintln(os.Stderr, m["id"], m["type"])
	}
	for _, line := range []string{
		`{"id":4,"type":"exec","command":"x","timeout_sec":0}`, `{"id":5,"type":"exec","command":"x","env":{"a=b":"c"}}`, `{"id":6,"type":"exec","command":"a\u0000b"}`,
		`{"id":7,"type":"write","path":"x","content_base64":"?"}`, `{"id":8,"type":"write","path":"x","content":"","mode":"u+s"}`, `{"id":9,"type":"read","path":""}`,
	} {
		fmt.Println(line)
		m := p.hear()
		fmt.Fprintln(os.Stderr, m["id"], m["type"])
	}
	fmt.Println(strings.Repeat("x", 9<<20))
	for i := 0; p.hear() != nil; i++ {
		fmt.Println("more nonsense")
	}
	return 0
}

func TestNonsense(t *testing.T) {
	t.Parallel()
	_, dir, logs, err := run(t.Context(), t, "nonsense", agent.Task{}, nil)
	typed, ok := errors.AsType[*exception.Error](err)
	if !ok || typed.Type != "AgentProtocolError" || !strings.Contains(typed.Message, "sent 32 messages that are none") {
		t.Errorf("got %v", err)
	}
	want := strings.Join([]string{"<nil>", "<nil>", "<nil>", "<nil>", "1", "2", "3", "<nil>", "<nil>", "<nil>", "4", "5", "6", "7", "8", "9", ""}, " error\n")
	if diff := cmp.Diff(want, file(t, logs, "external.txt")); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) != 0 {
		t.Errorf("made %v, %v", made, err)
	}
}

func playVariables(p *peer) int {
	p.hear()
	for _, kv := range os.Environ() {
		fmt.Fprintln(os.Stderr, kv)
	}
	fmt.Fprintln(os.Stderr, p.ask("exec", map[string]any{"command": "echo [$KEY]"})["output"])
	return 0
}

// TestVariables: the command has its own variables, and none of them is in the sandbox.
func TestVariables(t *testing.T) {
	t.Parallel()
	_, _, logs, err := run(t.Context(), t, "variables", agent.Task{}, nil)
	got := file(t, logs, "external.txt")
	for _, want := range []string{"HOME=of-HOME\n", "KEY=[REDACTED:KEY]\n", "PROCTOR_MODEL=p/m\n", "[]\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%v, %q lacks %q", err, got, want)
		}
	}
	if strings.Contains(got, "OTHER") {
		t.Errorf("it has a variable of this machine:\n%s", got)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	_, _, _, err := run(t.Context(), t, "failing", agent.Task{}, nil)
	if exit, ok := errors.AsType[*agent.ExitError](err); !ok || exit.Code != 7 || exit.Output != "it broke: [REDACTED:KEY]\n" {
		t.Errorf("failing: %v", err)
	}
	for _, part := range []string{"mute", "lingering"} {
		if _, _, _, err := run(t.Context(), t, part, agent.Task{}, nil); err != nil {
			t.Errorf("%s: %v", part, err)
		}
	}
}

// playEndless waits for a command that does not end.
func playEndless(p *peer) int {
	p.hear()
	p.say(map[string]any{"type": "usage", "output_tokens": 3})
	p.say(map[string]any{"id": 1, "type": "exec", "command": "touch begun; exec sleep 1000"})
	for p.hear() != nil {
	}
	return 0
}

// playStubborn does not end when it is asked to, and neither does its child. Both have the
// pipe that the instruction names.
func playStubborn(p *peer) int {
	signal.Ignore(syscall.SIGTERM)
	pipe, err := os.OpenFile(fmt.Sprint(p.hear()["instruction"]), os.O_WRONLY, 0)
	if err != nil {
		return 98
	}
	child := exec.Command("/bin/sh", "-c", "trap '' TERM; sleep 1000")
	child.Stdout, child.Stderr, child.ExtraFiles = os.Stdout, os.Stderr, []*os.File{pipe}
	if err := child.Start(); err != nil {
		return 97
	}
	p.say(map[string]any{"type": "usage", "output_tokens": 3})
	p.say(map[string]any{"id": 1, "type": "exec", "command": "touch begun; exec sleep 1000"})
	_ = child.Wait()
	return 0
}

// TestEndedWithItsTime: when its time is up nothing of the command is left, and what it
// used counts.
func TestEndedWithItsTime(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"endless", "stubborn"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			over := errors.New("the time is up")
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			held, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = held.Close() }()
			ctx, cancel := context.WithCancelCause(t.Context())
			result, _, _, err := run(ctx, t, part, agent.Task{Instruction: pipe}, func(e *agent.Env) {
				e.Sandbox = &noting{Sandbox: e.Sandbox, of: "touch begun", do: func() { cancel(over) }}
			})
			if !errors.Is(err, over) || result.OutputTokens == nil || *result.OutputTokens != 3 {
				t.Errorf("got %+v, %v", result, err)
			}
			if _, err := io.Copy(io.Discard, held); err != nil { // ends when nobody has the other end
				t.Error(err)
			}
		})
	}
}

// noting calls a function when a command begins.
type noting struct {
	sandbox.Sandbox
	of string
	do func()
}

func (n *noting) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	if strings.HasPrefix(cmd.Shell, n.of) {
		n.do()
	}
	return n.Sandbox.Exec(ctx, cmd)
}

// TestBrokenSandbox is given up, whatever the command does.
func TestBrokenSandbox(t *testing.T) {
	t.Parallel()
	_, _, _, err := run(t.Context(), t, "worker", agent.Task{}, func(e *agent.Env) { e.Sandbox = &broken{Sandbox: e.Sandbox} })
	if !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

var errBroken = errors.New("no sandbox any more")

type broken struct {
	sandbox.Sandbox
}

func (b *broken) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	if cmd.Shell == "pwd" {
		return b.Sandbox.Exec(ctx, cmd)
	}
	return sandbox.ExitStatus{}, errBroken
}
