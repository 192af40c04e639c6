package tools_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/tools"
	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// run lets the agent work on an instruction in a sandbox that has no processes.
func run(t *testing.T, script *llmtest.Script, env agent.Env, rules []fake.Rule, settings ...any) (agent.Result, string, error) {
	t.Helper()
	backend := fake.New(fake.Config{Dir: t.TempDir(), Rules: rules})
	t.Cleanup(func() { fake.Verify(t, backend) })
	sb, err := backend.Create(t.Context(), sandbox.Spec{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	c := config(t, script, settings...)
	a, err := tools.Entry().Sandboxed(c)
	if err != nil {
		t.Fatal(err)
	}
	env.Sandbox, env.LogDir, env.OutputLimit = sb, c.LogDir, c.OutputLimit
	if err := a.Setup(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	r, err := a.Run(t.Context(), env, agent.Task{Instruction: "Do it."})
	data, readErr := os.ReadFile(filepath.Join(c.LogDir, "trajectory.json"))
	if readErr != nil {
		t.Fatal(readErr)
	}
	if _, err := atif.Parse(data); err != nil {
		t.Errorf("%v\n%s", err, data)
	}
	return r, string(data), err
}

// TestSandboxed: the model works with a shell, as the task's user, and is told what
// came of it.
func TestSandboxed(t *testing.T) {
	t.Parallel()
	user := ""
	script := &llmtest.Script{Answers: []llmtest.Answer{
		llmtest.Call(call("a", "bash", `{"command": "say hello"}`), call("b", "bash", `{"command": "fail", "timeout": 5}`)),
		llmtest.Call(call("c", "bash", `{"command": 3}`), call("d", "read_file", `{"path": "/x"}`)),
		llmtest.Call(call("e", "write_file", `{"path": "/x", "content": "y"}`), call("f", "final_step", `{}`), call("g", "bash", `{"command": "never"}`)),
	}}
	warned := ""
	env := agent.Env{
		User: "agent", SkillsDir: "/skills", MCPServers: []agent.MCPServer{{Name: "s"}},
		Warn: func(format string, _ ...any) { warned = format },
	}
	r, trajectory, err := run(t, script, env, []fake.Rule{
		fake.On("say hello", fake.Print("hello\n"), func(_ context.Context, p *fake.Process) (int, error) {
			user = p.User
			return 0, nil
		}),
		fake.On("fail", fake.Print("no\n"), fake.Exit(3)),
		fake.On("cat '/x'", fake.Print("content")),
		fake.On("cat /x", fake.Print("content")),
		fake.On("never", fake.Fail(nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if user != "agent" {
		t.Errorf("commands ran as %q", user)
	}
	requests := script.Requests()
	if len(requests) != 3 {
		t.Fatalf("%d calls", len(requests))
	}
	var names []string
	for _, s := range requests[0].Tools {
		names = append(names, s.Name)
	}
	if want := []string{"bash", "read_file", "write_file", "final_step"}; !slices.Equal(names, want) {
		t.Errorf("tools %q, want %q", names, want)
	}
	contains(t, transcript(requests[0].Messages), "user: Do it.\n\nThere are skills in /skills:")
	contains(t, transcript(requests[1].Messages), "tool a: hello\n", "tool b: no\n\n[exit_code: 3]\n")
	contains(t, transcript(requests[2].Messages), "tool c: The call failed. TypeError:", "tool d: content\n")
	if !strings.Contains(warned, "MCP") {
		t.Errorf("warned %q", warned)
	}
	if *r.InputTokens != 30 {
		t.Errorf("tokens %d", *r.InputTokens)
	}
	contains(t, value.Repr(r.Metadata), "'end': 'stop'")
	contains(t, trajectory, `"tool_call_id": "e"`)
}

// TestSandboxedEnds: how a run ends, and that what was used is known then.
func TestSandboxedEnds(t *testing.T) {
	t.Parallel()
	bash := llmtest.Call(call("", "bash", `{"command": "x"}`))
	for _, c := range []struct {
		name     string
		answers  []llmtest.Answer
		rules    []fake.Rule
		settings []any
		err      string // part of it
		typ      string
		calls    int
		end      string
	}{
		{"the turns are used up", slices.Repeat([]llmtest.Answer{bash}, 9), nil, []any{"max_steps", 3}, "", "", 3, "max_steps"},
		{"the tokens are used up", slices.Repeat([]llmtest.Answer{bash}, 9), nil, []any{"max_tokens", 20}, "", "", 2, "max_tokens"},
		{"the sandbox is gone", slices.Repeat([]llmtest.Answer{bash}, 9), []fake.Rule{fake.Always(fake.Fail(nil))}, nil, "injected error", "", 4, ""},
		{"one command that cannot be run", []llmtest.Answer{bash, bash, llmtest.Call(call("", "final_step", ""))}, []fake.Rule{fake.Always(fake.Each(fake.Fail(nil), fake.Exit(0)))}, nil, "", "", 3, "stop"},
		{"the model is gone", []llmtest.Answer{bash, {Err: &llm.Error{Kind: llm.Transient, Status: 500}}}, nil, nil, "provider failure", "InternalServerError", 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			script := &llmtest.Script{Answers: c.answers}
			r, _, err := run(t, script, agent.Env{}, c.rules, c.settings...)
			if (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || c.typ != "" && exception.TypeOf(err) != c.typ) {
				t.Errorf("error %v, want %q of type %q", err, c.err, c.typ)
			}
			if n := len(script.Requests()); n != c.calls {
				t.Errorf("%d calls, want %d", n, c.calls)
			}
			if end, _ := r.Metadata.Get("end"); c.end == "" && end != nil || c.end != "" && end != value.Str(c.end) {
				t.Errorf("end %v, want %q", end, c.end)
			}
			if r.InputTokens == nil || *r.InputTokens == 0 {
				t.Error("what was used is not known")
			}
		})
	}
}
