package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/textfiles"
	"github.com/proctor-run/proctor/cubecli"
	"github.com/proctor-run/proctor/cubecli/sandboxes"
	mine "github.com/proctor-run/proctor/examples/library/agent"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	var commands atomic.Int64
	t.Cleanup(func() {
		if commands.Load() == 0 {
			t.Error("no command was reported")
		}
	})
	sandboxtest.Run(t, sandboxtest.Config{
		New: func(t testing.TB) sandbox.Backend {
			below := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{
				fake.On(sandboxtest.ScriptHang, fake.Print("ready\n"), fake.Hang()),
				fake.On(sandboxtest.ScriptBoth, fake.Print("out\n"), fake.PrintErr("err\n")),
				fake.On(sandboxtest.ScriptExit3, fake.Exit(3)),
				fake.On(sandboxtest.ScriptMuch, fake.Flood(sandboxtest.MuchBytes)),
				fake.On(sandboxtest.ScriptCat, fake.Cat()),
			}})
			return &Reported{Backend: below, Report: func(Command) { commands.Add(1) }}
		},
		Simulated: true, // it runs no processes
		OneUser:   os.Geteuid() != 0,
	})
}

func TestReport(t *testing.T) {
	t.Parallel()
	var got []Command
	b := &Reported{
		Backend: fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{fake.On("false", fake.Exit(1))}}),
		Report:  func(c Command) { got = append(got, c) },
	}
	sb, err := b.Create(t.Context(), sandbox.Spec{Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if _, err := sb.Exec(t.Context(), sandbox.Command{Shell: "false"}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Sandbox != "one" || got[0].Status.Code != 1 {
		t.Errorf("reported %+v", got)
	}
	if _, ok := sandbox.As[sandbox.Resetter](sb); !ok {
		t.Error("the sandbox's ability to be reset is hidden")
	}
}

// A backend that can enforce an allow list asks a policy what is on it.
func TestPolicy(t *testing.T) {
	t.Parallel()
	p := egress.Policy{Mode: sandbox.NetworkAllowlist, Hosts: []string{"*.example.com"}}
	if !p.Allows("a.example.com") || p.Allows("example.com") {
		t.Error("the policy allows other hosts than it says")
	}
	var log strings.Builder
	proxy := egress.NewProxy(p, egress.Upstream{}, &log, time.Now)
	if proxy == nil {
		t.Error("no proxy")
	}
}

// What fails below is reported above: no call hides the error of the backend.
func TestFailuresReachTheCaller(t *testing.T) {
	t.Parallel()
	calls := map[fake.Op]func(sb sandbox.Sandbox) error{
		fake.OpMark: func(sb sandbox.Sandbox) error { _, err := sb.Mark(t.Context()); return err },
		fake.OpExec: func(sb sandbox.Sandbox) error {
			_, err := sb.Exec(t.Context(), sandbox.Command{Shell: "true"})
			return err
		},
		fake.OpDownload: func(sb sandbox.Sandbox) error { return sb.Download(t.Context(), "/etc", io.Discard) },
		fake.OpDestroy:  func(sb sandbox.Sandbox) error { return sb.Destroy(t.Context()) },
		fake.OpKillTree: func(sb sandbox.Sandbox) error {
			mark, err := sb.Mark(t.Context())
			if err != nil {
				return err
			}
			return sb.KillTree(t.Context(), mark, time.Second)
		},
	}
	for op, call := range calls {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			b := &Reported{
				Backend: fake.New(fake.Config{Dir: t.TempDir(), Before: fake.FailAt(op, 1, nil), Rules: []fake.Rule{fake.Always()}}),
				Report:  func(Command) {},
			}
			sb, err := b.Create(t.Context(), sandbox.Spec{Name: "one"})
			if err != nil {
				t.Fatal(err)
			}
			if err := call(sb); !errors.Is(err, fake.ErrInjected) {
				t.Errorf("%s failed below, above it gave %v", op, err)
			}
			if err := sb.Destroy(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	b := &Reported{Backend: fake.New(fake.Config{Dir: t.TempDir(), Before: fake.Faults(fake.FailAt(fake.OpCreate, 1, nil))})}
	if _, err := b.Create(t.Context(), sandbox.Spec{Name: "one"}); !errors.Is(err, fake.ErrInjected) {
		t.Errorf("creating gave %v", err)
	}
}

// A command that changes its mind is reported each time.
func TestEachCommandIsReported(t *testing.T) {
	t.Parallel()
	var codes []int
	b := &Reported{
		Backend: fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{
			fake.On("flaky", fake.Each(fake.Exit(1), fake.InOrder(fake.Sleep(time.Millisecond), fake.Exit(0)))),
		}}),
		Report: func(c Command) { codes = append(codes, c.Status.Code) },
	}
	sb, err := b.Create(t.Context(), sandbox.Spec{Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := sb.Exec(t.Context(), sandbox.Command{Shell: "flaky"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := sb.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(codes, []int{1, 0, 0}) {
		t.Errorf("reported %v", codes)
	}
}

// A backend that hangs is left when its time is up.
func TestHangingBackend(t *testing.T) {
	t.Parallel()
	b := &Reported{Backend: fake.New(fake.Config{Dir: t.TempDir(), Before: fake.HangAt(fake.OpCreate, 1)})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Create(ctx, sandbox.Spec{Name: "one"}); !errors.Is(err, context.Canceled) {
		t.Errorf("creating gave %v", err)
	}
}

func TestMain(m *testing.M) { sandboxes.TestMain(m) }

// The program of a cube's author with the backend among its environments: help,
// errors, what is recorded and a resume know it, and with it an agent of one's own.
func TestProgram(t *testing.T) {
	t.Parallel()
	var commands atomic.Int64
	below := sandboxes.Entry{Name: "fake", New: func(context.Context, sandboxes.Options) (sandbox.Backend, func() error, error) {
		return fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{fake.Always()}}), func() error { return nil }, nil
	}}
	registry := sandboxes.Registry{below}
	entry := Entry("fake", func(Command) { commands.Add(1) })
	newReported := entry.New
	entry.New = func(ctx context.Context, o sandboxes.Options) (sandbox.Backend, func() error, error) {
		o.Backends = registry // where the one below is found
		return newReported(ctx, o)
	}
	jobs := t.TempDir()
	run := func(args ...string) (code int, out string) {
		var text strings.Builder
		p := &cubecli.Program{
			Name: "files", Args: append([]string{"files"}, args...), Stdout: &text, Stderr: &text,
			Cubes: []cubecli.Cube{{
				Name: "textfiles-cube", Register: textfiles.Register, Agent: textfiles.Agent, NeedsContainer: true,
				Config: func(b cube.ContainerBackend) cube.BenchmarkConfig { return textfiles.NewConfig(b) },
			}},
			// Agents of a directory of their own, and one of this file.
			Agents: append(mine.Registry(), agent.Entry{
				Name: "idle", Summary: "does nothing either",
				Stepped: func(agent.Config) (cube.Agent, error) { return cube.Script(), nil },
			}),
			Own: []*cobra.Command{{
				Use: "commands", Short: "Print how many commands ran in sandboxes",
				RunE: func(cmd *cobra.Command, _ []string) error {
					_, err := fmt.Fprintf(cmd.OutOrStdout(), "%d commands\n", commands.Load())
					return err
				},
			}},
			CacheRoot: func() (string, error) { return t.TempDir(), nil }, Now: time.Now,
			Lookup: func(string) (string, bool) { return "", false },
		}
		sandboxes.Attach(p, append(registry, entry))
		code = p.Run(t.Context())
		return code, text.String()
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"run --help", 0, "auto, fake, reported"},
		{"run --help", 0, "idle       does nothing either"},
		{"run -e nowhere", 2, "choose from auto, fake, reported"},
		{"run -e report", 2, "did you mean reported?"},
		{"run -a idel", 2, "did you mean idle"},
		{"run -e reported --runtime runc", 2, "no environment of this program has runtimes"},
		{"run -e reported -a idle --job-name j -l 1 -o " + jobs, 0, "1 trial: 1 scored"},
		{"resume " + filepath.Join(jobs, "j"), 0, "1 trial of 1 kept"},
		{"--help", 0, "Print how many commands ran in sandboxes"},
		{"commands", 0, " commands\n"},
		{"run -e reported -a idle --json --job-name events -l 1 -o " + jobs, 0, `"type":"job_end"`},
		{"run -e reported -a idle -q --fail-under 0.5 --job-name poor -l 1 -o " + jobs, 4, "below --fail-under 0.5"},
		{"run -a nop --skill x", 2, "unknown flag: --skill"},
	} {
		if code, out := run(strings.Fields(c.args)...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", c.args, code, c.code, c.want, out)
		}
	}
	cfg, err := job.StoredConfig(filepath.Join(jobs, "j"))
	if err != nil {
		t.Fatal(err)
	}
	if name, ok := cfg.Environment.Backend(); !ok || name != "reported" || commands.Load() == 0 {
		t.Errorf("the job ran in %q, and %d commands were reported", name, commands.Load())
	}
}
