//go:build unix

package external_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/external"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// playVariable makes this program one of the agents of these tests.
const playVariable = "PROCTOR_TEST_PLAY"

func TestMain(m *testing.M) {
	if part := os.Getenv(playVariable); part != "" {
		play, known := parts[part]
		if !known {
			fmt.Fprintln(os.Stderr, "there is no part", part)
			os.Exit(99)
		}
		os.Exit(play(&peer{in: bufio.NewReader(os.Stdin)}))
	}
	os.Exit(m.Run())
}

// peer is the agent's side of the protocol.
type peer struct {
	in   *bufio.Reader
	next int
}

func (p *peer) say(m map[string]any) {
	line, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

// hear returns the next message; nil at the end.
func (p *peer) hear() map[string]any {
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		return nil
	}
	m := map[string]any{}
	if err := json.Unmarshal(line, &m); err != nil {
		panic(err)
	}
	return m
}

// ask sends a request and returns its answer.
func (p *peer) ask(kind string, members map[string]any) map[string]any {
	p.next++
	m := map[string]any{"id": p.next, "type": kind}
	for k, v := range members {
		m[k] = v
	}
	p.say(m)
	return p.hear()
}

// newSandbox is a fake one whose commands run in a directory of this machine.
func newSandbox(ctx context.Context, t *testing.T) (*fake.Sandbox, string) {
	t.Helper()
	dir := t.TempDir()
	b := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{fake.Always(runIn(dir))}})
	t.Cleanup(func() { fake.Verify(t, b) })
	sb, err := b.Create(ctx, sandbox.Spec{Name: "x", User: "image"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Destroy(context.WithoutCancel(ctx)) })
	return b.Sandboxes()[0], dir
}

func runIn(dir string) fake.Handler {
	return func(ctx context.Context, p *fake.Process) (int, error) {
		argv := p.Command.Argv
		if len(argv) == 0 {
			argv = []string{"sh", "-c", p.Command.Shell}
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, p.Stdout, p.Stderr
		if p.Command.Dir != "" {
			cmd.Dir = p.Command.Dir
		}
		cmd.Env = append(os.Environ(), "SANDBOX_USER="+p.User)
		cmd.Env = append(cmd.Env, p.Command.Env...)
		stdin, err := cmd.StdinPipe() // a copy that cmd waits for would wait for the sender, too
		if err != nil {
			return 0, err
		}
		if err := cmd.Start(); err != nil {
			return fake.Refuse(err.Error())(ctx, p)
		}
		go func() {
			_, _ = io.Copy(stdin, p.Stdin)
			_ = stdin.Close()
		}()
		err = cmd.Wait()
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode(), nil
		}
		return 0, err
	}
}

// newAgent makes an agent of alternating names and values of settings.
func newAgent(t *testing.T, c agent.Config, settings ...any) agent.Agent {
	t.Helper()
	c.Settings = cube.Pairs(settings...)
	e, err := external.Agents().Resolve(c, false)
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.Sandboxed(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// quoted is a path of this machine for a shell.
func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
