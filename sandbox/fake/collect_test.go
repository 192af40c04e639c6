package fake_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// keeping is a backend that breaks the contract: output stays in memory.
type keeping struct {
	*fake.Backend
	how string
}

func (k keeping) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	sb, err := k.Backend.Create(ctx, spec)
	return keepingSandbox{sb, k.how}, err
}

type keepingSandbox struct {
	sandbox.Sandbox
	how string
}

func (k keepingSandbox) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	if cmd.Stdout == nil {
		return k.Sandbox.Exec(ctx, cmd)
	}
	var all bytes.Buffer
	sink := cmd.Stdout
	cmd.Stdout = &all
	if k.how == "kept" {
		cmd.Stdout = io.MultiWriter(&all, sink)
	}
	st, err := k.Sandbox.Exec(ctx, cmd)
	switch k.how {
	case "collected":
		_, _ = sink.Write(all.Bytes())
	case "collected, in parts":
		// What is left of the buffer shrinks only when all of it is read.
		_, _ = io.Copy(sink, io.LimitReader(&all, 1<<62))
	}
	_ = all.Len() // reachable up to here
	return st, err
}

// TestKeptOutputIsFound: the suite fails for backends that collect output in
// memory, whatever else the process does, and for the reason that they do.
func TestKeptOutputIsFound(t *testing.T) {
	t.Parallel()
	const variable = "FAKE_TEST_KEEPS"
	if how := os.Getenv(variable); how != "" {
		sandboxtest.Run(t, sandboxtest.Config{
			New: func(t testing.TB) sandbox.Backend {
				return keeping{fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{
					fake.On(sandboxtest.ScriptExit3, fake.Exit(3)),
					fake.On(sandboxtest.ScriptMuch, fake.Flood(sandboxtest.MuchBytes)),
				}}), how}
			},
			Simulated: true,
		})
		return
	}
	for _, how := range []string{"kept", "collected", "collected, in parts"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			// Not the obligation alone, so that it needs another process still.
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKeptOutputIsFound$/^Output$/^(big_output_needs|without_sinks)", "-test.v")
			cmd.Env = append(os.Environ(), variable+"="+how)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if err == nil || !strings.Contains(text, "bytes of output were read, ") ||
				!strings.Contains(text, "in a process of its own the test did not pass") ||
				!strings.Contains(text, "--- PASS: TestKeptOutputIsFound/Output/without_sinks") {
				t.Errorf("got %v\n%s", err, out)
			}
		})
	}
}
