package builtin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/builtin"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// codeDir makes a directory of files.
func codeDir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCheckPython(t *testing.T) {
	t.Parallel()
	dir := codeDir(t, map[string]string{"agent.py": ""})
	link := filepath.Join(t.TempDir(), "link")
	huge := codeDir(t, map[string]string{"a/big": ""})
	if err := errors.Join(os.Symlink(dir, link), os.Truncate(filepath.Join(huge, "a/big"), 1<<30+1)); err != nil {
		t.Fatal(err)
	}
	const malformed = "want module:Class, for example agent:Agent"
	for _, c := range []struct {
		name     string
		settings []any
		want     string // part of the error; none for a configuration that is fine
	}{
		{"code alone", []any{"dir", dir}, ""},
		{"all", []any{"dir", dir, "import", "a.b_1:C", "python", "/opt/python", "version", "1.0"}, ""},
		{"a link", []any{"dir", link}, ""},
		{"letters of others", []any{"dir", dir, "import", "päckchen:Ä"}, ""},
		{"no directory given", []any{"import", "a:B"}, "setting dir is missing"},
		{"no text", []any{"dir", 3}, "setting dir is 3, want text"},
		{"no such directory", []any{"dir", dir + "/none"}, "there is no directory"},
		{"a file", []any{"dir", dir + "/agent.py"}, "is not a directory; give the one that the file is in"},
		{"too large", []any{"dir", huge}, "is too large to upload"},
		{"no colon", []any{"dir", dir, "import", "agent.Agent"}, malformed},
		{"no class", []any{"dir", dir, "import", "agent:"}, malformed},
		{"no module", []any{"dir", dir, "import", ":Agent"}, malformed},
		{"a file's name", []any{"dir", dir, "import", "my-agent/agent.py:Agent"}, malformed},
		{"two colons", []any{"dir", dir, "import", "a:b:C"}, malformed},
		{"a digit", []any{"dir", dir, "import", "1a:B"}, malformed},
		{"blank", []any{"dir", dir, "import", ""}, malformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := builtin.Agents().Check(config("python", c.settings...), false)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if err != nil && exception.TypeOf(err) != exception.ValueError {
				t.Errorf("the error is a %q", exception.TypeOf(err))
			}
		})
	}
	if err := builtin.Agents().Check(config("python", "dir", dir), true); err == nil {
		t.Error("it plays the tasks of a cube")
	}
}

// pythonRun is a trial of agent python in a sandbox whose interpreter is a rule.
type pythonRun struct {
	setup, err error
	result     agent.Result
	warnings   []string
	sandbox    *fake.Sandbox
	calls      []fake.Call
	log        string
}

func runPython(t *testing.T, ctx context.Context, rules ...fake.Rule) (r pythonRun) {
	t.Helper()
	b := fake.New(fake.Config{Dir: t.TempDir(), Rules: rules})
	t.Cleanup(func() { fake.Verify(t, b) })
	before := context.WithoutCancel(ctx) // only the run may be ended
	sb, err := b.Create(before, sandbox.Spec{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Destroy(before) })
	c := config("python", "dir", codeDir(t, map[string]string{"agent.py": "code", "lib/more.py": "more"}), "import", "agent:Mine")
	c.Env, c.Model = []string{"API_KEY=secret", "API_KEY=hidden", "X=1"}, "p/m"
	e, err := builtin.Agents().Resolve(c, false)
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.Sandboxed(c)
	if err != nil {
		t.Fatal(err)
	}
	env := agent.Env{Sandbox: sb, User: "worker", LogDir: t.TempDir(), OutputLimit: 1 << 10, SkillsDir: "/skills", Warn: func(format string, args ...any) {
		r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
	}}
	r.sandbox = b.Sandboxes()[0]
	if r.setup = a.Setup(before, env); r.setup == nil {
		r.result, r.err = a.Run(ctx, env, agent.Task{Instruction: "do it"})
	}
	log, _ := os.ReadFile(filepath.Join(env.LogDir, "python.txt"))
	r.calls, r.log = b.Calls(), string(log)
	return r
}

func TestPythonIsGivenItsTask(t *testing.T) {
	t.Parallel()
	r := runPython(t, t.Context(), fake.On("python_agent.py", fake.Print("hello\n"),
		fake.Write("/proctor/python_context.json", `{"n_input_tokens": 3, "n_cache_tokens": null, "n_output_tokens": 0, "cost_usd": 1, "metadata": {"a": [1]}}`)))
	if err := errors.Join(r.setup, r.err); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/workspace/agent/agent.py": "code", "/workspace/agent/lib/more.py": "more", "/proctor/instruction.md": "do it",
		"/proctor/python_agent.json": `{"import": "agent:Mine", "dir": "/workspace/agent", "instruction": "/proctor/instruction.md", ` +
			`"context": "/proctor/python_context.json", "model": "p/m", "env": ["API_KEY", "X"]}`,
	} {
		if got, err := r.sandbox.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
	last := r.calls[len(r.calls)-2] // and then the download
	wantVars := []string{"API_KEY=secret", "API_KEY=hidden", "X=1", "PROCTOR_SKILLS_DIR=/skills"}
	if last.Op != fake.OpExec || last.Command.User != "worker" || strings.Join(last.Command.Env, " ") != strings.Join(wantVars, " ") {
		t.Errorf("the agent ran as %+v", last)
	}
	if r.log != "hello\n" || len(r.warnings) > 0 {
		t.Errorf("log %q, warnings %q", r.log, r.warnings)
	}
	if n := r.result; n.InputTokens == nil || *n.InputTokens != 3 || n.CacheTokens != nil || n.OutputTokens == nil || *n.OutputTokens != 0 ||
		n.CostUSD == nil || *n.CostUSD != 1 || n.Metadata == nil || n.Metadata.Len() != 1 {
		t.Errorf("result %+v", n)
	}
}

// TestPythonReportsAreChecked: the agent may report what it likes, and only what can
// be so is believed.
func TestPythonReportsAreChecked(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65)
	for name, c := range map[string]struct{ text, warning string }{
		"nothing":            {"", ""},
		"nulls":              {`{"n_input_tokens": null}`, ""},
		"no JSON":            {"x", "is left out"},
		"no object":          {"[]", "it is not an object"},
		"too long":           {strings.Repeat(" ", 1<<20) + "{}", "is left out"},
		"negative":           {`{"n_input_tokens": -1}`, "n_input_tokens -1 and not a whole number from 0"},
		"huge":               {`{"n_cache_tokens": 1` + strings.Repeat("0", 40) + `}`, "n_cache_tokens 1000"},
		"a fraction":         {`{"n_output_tokens": 0.5}`, "n_output_tokens 0.5"},
		"true":               {`{"n_output_tokens": true}`, "n_output_tokens True"},
		"NaN":                {`{"cost_usd": NaN}`, "cost_usd nan and not a number from 0"},
		"infinite":           {`{"cost_usd": Infinity}`, "cost_usd inf"},
		"owed":               {`{"cost_usd": -0.1}`, "cost_usd -0.1"},
		"text":               {`{"cost_usd": "1"}`, "cost_usd '1'"},
		"metadata of a list": {`{"metadata": []}`, "metadata [] and not an object"},
		"deep metadata":      {`{"metadata": ` + deep + `}`, "an object of at most 64 levels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runPython(t, t.Context(), fake.On("python_agent.py", fake.Write("/proctor/python_context.json", c.text)))
			if err := errors.Join(r.setup, r.err); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(r.result, agent.Result{}) {
				t.Errorf("believed: %+v", r.result)
			}
			if got := strings.Join(r.warnings, "\n"); (got == "") != (c.warning == "") || !strings.Contains(got, c.warning) {
				t.Errorf("warnings %q, want one with %q", got, c.warning)
			}
		})
	}
}

func TestPythonFailures(t *testing.T) {
	t.Parallel()
	report := fake.Write("/proctor/python_context.json", `{"n_input_tokens": 7}`)
	for name, c := range map[string]struct {
		rule      fake.Rule
		typ       string
		parts     []string
		inSetup   bool
		withUsage bool
	}{
		"no interpreter": {fake.On("version_info", fake.Refuse("python3: not found")), "",
			[]string{"there is no python3 in the sandbox (python3: not found)", "an image with Python 3.8 or later", "--ak python=PATH"}, true, false},
		"an old one": {fake.On("version_info", fake.Print("this is Python 3.6.1\n"), fake.Exit(1)), "",
			[]string{"python3 in the sandbox cannot run the agent (exit 1: this is Python 3.6.1)", "Python 3.8"}, true, false},
		"no agent": {fake.On("python_agent.py", fake.Print("No module named 'agent'\n"), fake.Exit(96)), exception.SubmissionCodeError,
			[]string{"agent:Mine of the agent's code gives no agent", "No module named 'agent'"}, false, false},
		"it raises": {fake.On("python_agent.py", report, fake.Print("ValueError: mine\n"), fake.Exit(1)), exception.NonZeroAgentExitCodeError,
			[]string{"Command failed (exit 1): python3 -u /proctor/python_agent.py", "ValueError: mine"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runPython(t, t.Context(), c.rule)
			err := errors.Join(r.setup, r.err)
			if err == nil || (r.setup != nil) != c.inSetup || exception.TypeOf(err) != c.typ {
				t.Fatalf("set-up %v, run %v, want a %q", r.setup, r.err, c.typ)
			}
			for _, part := range c.parts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
			if (r.result.InputTokens != nil) != c.withUsage || len(r.warnings) > 0 {
				t.Errorf("result %+v, warnings %q", r.result, r.warnings)
			}
		})
	}
}

// TestPythonReportsAfterItsDeadline: what was used was used.
func TestPythonReportsAfterItsDeadline(t *testing.T) {
	t.Parallel()
	passed := errors.New("the time is up")
	ctx, cancel := context.WithCancelCause(t.Context())
	r := runPython(t, ctx, fake.On("python_agent.py", fake.Write("/proctor/python_context.json", `{"n_input_tokens": 7}`),
		func(context.Context, *fake.Process) (int, error) { cancel(passed); return 0, nil }, fake.Hang()))
	if !errors.Is(r.err, passed) || r.result.InputTokens == nil || *r.result.InputTokens != 7 {
		t.Errorf("%v, result %+v", r.err, r.result)
	}
}

// TestPythonForgetsEarlierReports: Run is called once per step.
func TestPythonForgetsEarlierReports(t *testing.T) {
	t.Parallel()
	b := fake.New(fake.Config{Dir: t.TempDir(), Files: map[string]string{"/proctor/python_context.json": `{"n_input_tokens": 7}`}})
	defer fake.Verify(t, b)
	sb, err := b.Create(t.Context(), sandbox.Spec{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Destroy(t.Context()) }()
	a, err := newAgent("python", "dir", codeDir(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	result, err := a.Run(t.Context(), agent.Env{Sandbox: sb, LogDir: t.TempDir(), OutputLimit: 1 << 10}, agent.Task{})
	if err != nil || !reflect.DeepEqual(result, agent.Result{}) {
		t.Errorf("%+v, %v", result, err)
	}
}
