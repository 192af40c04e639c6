package backend

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
