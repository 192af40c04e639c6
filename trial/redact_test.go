package trial_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
)

const hiddenValue = "hunter2/hunter2"

// leaky is a bench whose oracle prints a secret in two pieces, and what its file holds
// in between.
func leaky(t *testing.T) (b *bench, between *string) {
	t.Helper()
	between = new(string)
	b = newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", func(_ context.Context, p *fake.Process) (int, error) {
			_, _ = io.WriteString(p.Stdout, "the key is hunter2/")
			data, err := os.ReadFile(filepath.Join(b.dir, "agent", "oracle.txt"))
			*between = string(data)
			_, _ = io.WriteString(p.Stdout, "hunter2\n")
			return 1, err
		}),
		fake.On("test.sh", func(_ context.Context, p *fake.Process) (int, error) {
			_, _ = fmt.Fprintln(p.Stdout, "judging", hiddenValue)
			return 0, errors.New("lost the sandbox: " + hiddenValue)
		}),
	}})
	b.cfg.Agent.Env.Set("SOME_PASSWORD", hiddenValue)
	return b, between
}

func TestSecretsOfATrial(t *testing.T) {
	t.Parallel()
	b, between := leaky(t)
	var debug strings.Builder
	b.JobLog = &debug
	var last *jobdir.TrialResult
	b.Emit = func(e trial.Event) { last = e.Result }
	// What an attempt left that was killed before its files were looked at.
	killed := filepath.Join(b.dir, "attempts", "1", "agent", "log")
	if err := errors.Join(os.MkdirAll(filepath.Dir(killed), 0o755), os.WriteFile(killed, []byte(hiddenValue), 0o644)); err != nil {
		t.Fatal(err)
	}
	res := b.run(t)
	if *between != "the key is " {
		t.Errorf("before the secret is whole its file has %q", *between)
	}
	for name, want := range map[string]string{
		"agent/oracle.txt": "the key is [REDACTED:SOME_PASSWORD]\n", "verifier/test-stdout.txt": "judging [REDACTED:SOME_PASSWORD]\n",
		"attempts/1/agent/log": "[REDACTED:SOME_PASSWORD]",
	} {
		if data, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(name))); err != nil || string(data) != want {
			t.Errorf("%s has %q, %v; want %q", name, data, err, want)
		}
	}
	for name, text := range map[string]string{
		"result": res.ExceptionInfo.Message, "event": last.ExceptionInfo.Traceback, "log": debug.String(),
		"exception.txt": readText(t, b.dir, "exception.txt"), "result.json": readText(t, b.dir, "result.json"),
		"proctor.json": readText(t, b.dir, "proctor.json"), "trial.log": readText(t, b.dir, "trial.log"),
	} {
		if !strings.Contains(text, "[REDACTED:SOME_PASSWORD]") || strings.Contains(text, hiddenValue) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func readText(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

func TestScanThatIsGivenUpIsAWarning(t *testing.T) {
	t.Parallel()
	b, _ := leaky(t)
	stop := make(chan struct{})
	close(stop)
	b.Abandon = stop
	b.run(t)
	notes, err := jobdir.ReadNotes(b.dir)
	if err != nil || len(notes.Warnings) == 0 || !strings.Contains(notes.Warnings[len(notes.Warnings)-1], "may still hold secrets") {
		t.Errorf("warnings %q, %v", notes.Warnings, err)
	}
}
