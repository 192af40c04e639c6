package terminus

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// terminal is a tmux for the fake sandbox. It keeps a screen, on which typed lines
// appear with what they print.
type terminal struct {
	// has are the programs that are there: tmux, asciinema, apt-get.
	has map[string]bool
	// installs is what the package manager brings; install, where set, is what it does.
	installs []string
	install  fake.Handler
	// prints is what typed keys print; nil prints nothing. "exit\n" ends the shell.
	prints func(keys string) string
	// fault, where set, is what a command of the sandbox, counted from 1, does instead.
	fault   fake.Handler
	faultAt int

	mu       sync.Mutex
	running  bool
	text     string
	typed    []string // keys, in order
	commands []sandbox.Command
}

func (m *terminal) rules() []fake.Rule {
	return []fake.Rule{{Match: func(sandbox.Command) bool { return true }, Do: m.handle}}
}

func (m *terminal) handle(ctx context.Context, p *fake.Process) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commands = append(m.commands, p.Command)
	if len(m.commands) == m.faultAt {
		return m.fault(ctx, p)
	}
	shell := p.Command.Shell
	switch {
	case len(p.Command.Argv) > 0:
		if m.install != nil {
			return m.install(ctx, p)
		}
		for _, name := range m.installs {
			m.has[name] = true
		}
	case strings.HasPrefix(shell, "tmux -V"):
		m.probe(p.Stdout)
	case strings.Contains(shell, "new-session"):
		if !m.has["tmux"] {
			return 127, nil
		}
		m.running, m.text = true, "$ "
	case strings.HasPrefix(shell, sendKeys):
		if !m.running {
			_, _ = io.WriteString(p.Stdout, "no server running")
			return 1, nil
		}
		m.send(shell)
	case strings.Contains(shell, "capture-pane"):
		return m.show(p)
	case strings.Contains(shell, "has-session") && !m.running:
		return 1, nil
	}
	return 0, nil
}

func (m *terminal) probe(out io.Writer) {
	for _, name := range []string{"tmux", "asciinema"} {
		if m.has[name] {
			_, _ = fmt.Fprintln(out, name)
		}
	}
	if m.has["apt-get"] {
		_, _ = fmt.Fprintln(out, "manager apt-get")
	}
}

// send types what a shell would hand to tmux.
func (m *terminal) send(shell string) {
	keys := ""
	for command := range strings.SplitSeq(shell, " && "+sendKeys) {
		command = strings.TrimPrefix(strings.TrimPrefix(command, sendKeys), " ")
		if strings.HasPrefix(command, "'") {
			command = strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(command, "'"), "'"), `'"'"'`, "'")
		}
		keys += command
	}
	m.typed = append(m.typed, keys)
	m.text += keys
	if m.prints != nil {
		m.text += m.prints(keys)
	}
	if keys == "exit\n" {
		m.running = false
	}
	m.text += "$ "
}

func (m *terminal) show(p *fake.Process) (int, error) {
	if !m.running {
		return 1, nil
	}
	_, _ = io.WriteString(p.Stdout, m.text+"\n\n")
	lines := strings.Split(m.text, "\n")
	_, _ = io.WriteString(p.Stderr, strings.Join(lines[max(len(lines)-40, 0):], "\n")+"\n")
	return 0, nil
}

func (m *terminal) keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.typed...)
}

// bench is an agent at a fake terminal, with a scripted model and a clock that only
// waits move.
type bench struct {
	t        testing.TB
	terminal *terminal
	script   *llmtest.Script
	backend  *fake.Backend
	agent    agent.Agent
	env      agent.Env
	dir      string

	mu       sync.Mutex
	time     time.Time
	waits    []time.Duration
	warnings []string
	// sleep, where set, is what waiting does.
	sleep func(ctx context.Context, d time.Duration) error
}

func newBench(t testing.TB, answers []llmtest.Answer, settings ...any) *bench {
	t.Helper()
	b := &bench{
		t: t, terminal: &terminal{has: map[string]bool{"tmux": true}}, script: &llmtest.Script{About: llm.Info{Name: "p/m"}, Answers: answers},
		time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), dir: t.TempDir(),
	}
	b.backend = fake.New(fake.Config{Dir: t.TempDir(), Rules: b.terminal.rules()})
	sb, err := b.backend.Create(t.Context(), sandbox.Spec{Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sb.Destroy(context.Background())
		fake.Verify(t, b.backend)
	})
	b.env = agent.Env{Sandbox: sb, LogDir: b.dir, OutputLimit: 1 << 20, Warn: func(format string, args ...any) {
		b.warnings = append(b.warnings, fmt.Sprintf(format, args...))
	}}
	c := config(append([]any{"record_terminal_session", "false"}, settings...)...)
	c.Models = llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) { return b.script, nil })
	b.agent, err = newAgent(c, surroundings{now: b.now, sleep: b.wait, newID: func() string { return "id" }})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// config is a configuration of names and values.
func config(settings ...any) agent.Config {
	o := value.NewObject(len(settings) / 2)
	for i := 0; i+1 < len(settings); i += 2 {
		v, err := value.Decode([]byte(settings[i+1].(string)))
		if err != nil {
			v = value.Str(settings[i+1].(string))
		}
		o.Set(settings[i].(string), v)
	}
	c := agent.Config{Name: agentName, Model: "p/m", Settings: o}
	if v, ok := o.Get("model"); ok { // of the tests alone
		c.Model = string(v.(value.Str))
		o.Delete("model")
	}
	return c
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.time
}

func (b *bench) wait(ctx context.Context, d time.Duration) error {
	if b.sleep != nil {
		return b.sleep(ctx, d)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waits = append(b.waits, d)
	b.time = b.time.Add(d)
	return context.Cause(ctx)
}

func (b *bench) setup() {
	b.t.Helper()
	if err := b.agent.Setup(b.t.Context(), b.env); err != nil {
		b.t.Fatal(err)
	}
}

// run sets up and runs, and checks the files that are left.
func (b *bench) run() (agent.Result, error) {
	b.t.Helper()
	b.setup()
	return b.again(b.t.Context())
}

func (b *bench) again(ctx context.Context) (agent.Result, error) {
	b.t.Helper()
	result, err := b.agent.Run(ctx, b.env, agent.Task{Instruction: "Do it."})
	files, globErr := filepath.Glob(filepath.Join(b.dir, "trajectory*.json"))
	if globErr != nil {
		b.t.Fatal(globErr)
	}
	for _, file := range files {
		b.trajectory(filepath.Base(file))
	}
	return result, err
}

// must is run without an error.
func (b *bench) must() agent.Result {
	b.t.Helper()
	result, err := b.run()
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

func (b *bench) file(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// trajectory reads a file, which must be valid.
func (b *bench) trajectory(name string) *atif.Trajectory {
	b.t.Helper()
	trajectory, err := atif.Parse([]byte(b.file(name)))
	if err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
	return trajectory
}

// steps are the steps of trajectory.json.
func (b *bench) steps() []atif.Step { return b.trajectory("trajectory.json").Steps }

// prompts are what the model was asked last in each call.
func (b *bench) prompts() []string {
	var list []string
	for _, r := range b.script.Requests() {
		list = append(list, r.Messages[len(r.Messages)-1].Text())
	}
	return list
}

func sources(steps []atif.Step) string {
	var list []string
	for _, s := range steps {
		name := string(s.Source)
		if s.IsCopiedContext != nil && *s.IsCopiedContext {
			name += "*"
		}
		list = append(list, name)
	}
	return strings.Join(list, " ")
}

// observed is the text of a step's only result.
func observed(t testing.TB, s atif.Step) string {
	t.Helper()
	if s.Observation == nil || len(s.Observation.Results) != 1 || s.Observation.Results[0].Content == nil {
		t.Fatalf("step %d has no observation", s.ID)
	}
	return s.Observation.Results[0].Content.Text
}

// answers of a model.
const (
	junk             = "no idea"
	lsJSON, doneJSON = `{"analysis":"seen","plan":"look","commands":[{"keystrokes":"ls\n","duration":0.5}]}`,
		`{"analysis":"good","plan":"","commands":[],"task_complete":true}`
)

// says are answers of text.
func says(texts ...string) []llmtest.Answer {
	var list []llmtest.Answer
	for _, text := range texts {
		list = append(list, llmtest.Say(text))
	}
	return list
}

func fails(kind llm.Kind) llmtest.Answer {
	return llmtest.Answer{Err: &llm.Error{Kind: kind, Model: "p/m", Message: "no"}}
}

func repeat(a llmtest.Answer, n int) []llmtest.Answer {
	var list []llmtest.Answer
	for range n {
		list = append(list, a)
	}
	return list
}

// cutOff is an answer that the limit of output ended.
func cutOff(text string) llmtest.Answer {
	a := llmtest.Say(text)
	a.Response.Finish = llm.Length
	return a
}

// must2 is a run whose files are not looked for.
func (b *bench) must2(t *testing.T) {
	t.Helper()
	b.setup()
	if _, err := b.agent.Run(t.Context(), b.env, agent.Task{Instruction: "Do it."}); err != nil || len(b.warnings) != 1 {
		t.Errorf("got %v, warnings %q", err, b.warnings)
	}
}

// hide replaces the word "good".
func hide(w io.Writer) io.WriteCloser { return hiding{w} }

type hiding struct{ to io.Writer }

func (h hiding) Write(p []byte) (int, error) {
	if _, err := io.WriteString(h.to, strings.ReplaceAll(string(p), "good", "GONE")); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (h hiding) Close() error { return nil }

func must(v value.Value) []byte { return value.AppendDumps(nil, v, value.DumpsOptions{}) }
