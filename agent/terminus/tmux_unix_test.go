//go:build unix

package terminus

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// local runs commands on this machine, with a tmux of its own below dir.
func local(t *testing.T, dir string) fake.Handler {
	t.Helper()
	bash := need.Program(t, "bash")
	return func(ctx context.Context, p *fake.Process) (int, error) {
		cmd := exec.CommandContext(ctx, bash, "-c", strings.ReplaceAll(p.Command.Shell, logs, dir))
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, p.Stdout, p.Stderr
		cmd.Env = append(os.Environ(), "HOME="+dir, "TMUX_TMPDIR="+dir, "TMUX=", "PS1=$ ", "LC_ALL=C.UTF-8")
		cmd.Env = append(cmd.Env, p.Command.Env...)
		err := cmd.Run()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
			return exit.ExitCode(), nil
		}
		return 0, err
	}
}

// TestRealTmux: keys arrive, the screen is read, nothing scrolls away, and the end of
// the shell is the end of the run.
func TestRealTmux(t *testing.T) {
	t.Parallel()
	need.Program(t, "tmux")
	dir := t.TempDir()
	do := local(t, dir)
	backend := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{fake.Always(do)}})
	defer fake.Verify(t, backend)
	sb, err := backend.Create(t.Context(), sandbox.Spec{Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Destroy(context.Background()) }()
	tmux := func(ctx context.Context, shell string) error {
		_, err := sb.Exec(ctx, sandbox.Command{Shell: shell})
		return err
	}
	defer func() { _ = tmux(context.Background(), "tmux kill-server") }()

	const done = `; tmux wait-for -S done`
	const ask = `{"analysis":"a","plan":"p","commands":[`
	script := &llmtest.Script{Answers: says(
		ask+`{"keystrokes":"echo \"it's $KEY\" > said; seq 1 3000; echo äää","duration":0},{"keystrokes":";","duration":0},{"keystrokes":" echo end`+done+`\n","duration":1}]}`,
		ask+`{"keystrokes":"tmux wait-for -S done; cat > more`+done+`\n","duration":1},{"keystrokes":"more","duration":0},{"keystrokes":"Enter","duration":0},{"keystrokes":"C-d","duration":1}]}`,
		ask+`{"keystrokes":"exit\n","duration":2}]}`,
	)}
	c := config("record_terminal_session", "false")
	c.Env = []string{"KEY=value"}
	c.Models = llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) { return script, nil })
	// A wait lasts until what was typed has been done.
	a, err := newAgent(c, surroundings{sleep: func(ctx context.Context, d time.Duration) error {
		if d > time.Second {
			return tmux(ctx, "while tmux has-session -t terminus-2 2>/dev/null; do :; done")
		}
		return tmux(ctx, "tmux wait-for done")
	}})
	if err != nil {
		t.Fatal(err)
	}
	env := agent.Env{Sandbox: sb, LogDir: dir, OutputLimit: 1 << 20}
	if err := a.Setup(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := a.Run(ctx, env, agent.Task{Instruction: "Do it."}); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: dir}
	steps := b.steps()
	if got := sources(steps); got != "user agent agent agent" {
		t.Fatalf("the steps are %s", got)
	}
	if got := observed(t, steps[1]); !strings.Contains(got, "New Terminal Output:\n") || !strings.Contains(got, "\n10\n11\n") ||
		!strings.Contains(got, "interior bytes omitted") || !strings.Contains(got, "\n3000\näää\nend\n") {
		t.Errorf("it observed %q … %q", got[:200], lastCharacters(got, 200))
	}
	if got := observed(t, steps[2]); !strings.Contains(got, "New Terminal Output:\n") || strings.Contains(got, "\n2999\n") {
		t.Errorf("then it observed %q", lastCharacters(got, 2000))
	}
	for name, want := range map[string]string{"said": "it's value\n", "more": "more\n"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != want {
			t.Errorf("file %s: %q, %v", name, data, err)
		}
	}
	if pane, err := os.ReadFile(filepath.Join(dir, "terminus_2.pane")); err != nil || !strings.Contains(string(pane), "3000") {
		t.Errorf("the pane's file has %d bytes, %v", len(pane), err)
	}
}
