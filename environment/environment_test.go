package environment_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// taskOf writes a small task with a task.toml and loads it.
func taskOf(t *testing.T, toml string) *harbor.Task {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a-task")
	for name, content := range map[string]string{
		"task.toml":              toml,
		"instruction.md":         "Do it.\n",
		"environment/Dockerfile": "FROM debian\n",
		"tests/test.sh":          "#!/bin/bash\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	task, err := harbor.Load(dir, harbor.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// open returns an environment of a task on the fake backend, that is closed at
// the test's end.
func open(t *testing.T, toml string, cfg fake.Config, change func(*environment.Config)) (*environment.Environment, *fake.Backend) {
	t.Helper()
	cfg.Dir = t.TempDir()
	b := fake.New(cfg)
	t.Cleanup(func() { fake.Verify(t, b) })
	logs := t.TempDir()
	if err := environment.MakeLogDirs(logs); err != nil {
		t.Fatal(err)
	}
	ec := environment.Config{
		Backend: b, Task: taskOf(t, toml), Logs: logs, OutputLimit: 1 << 20, Now: time.Now,
		Spec: sandbox.Spec{Name: "a-task", Image: sandbox.Image{Build: &sandbox.Build{ContextDir: "/"}}, Mounts: environment.LogMounts(b.Capabilities(), logs)},
	}
	if change != nil {
		change(&ec)
	}
	e := environment.New(ec)
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e, b
}

func start(t *testing.T, e *environment.Environment) {
	t.Helper()
	for _, do := range []func(context.Context) error{e.Start, e.WaitHealthy, e.Equip} {
		if err := do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

var granted = fake.On("(/tests/test.sh", fake.Write("/logs/verifier/reward.txt", "1"))

func TestNothingHappensAfterClose(t *testing.T) {
	t.Parallel()
	e, b := open(t, "", fake.Config{Rules: []fake.Rule{granted}}, nil)
	start(t, e)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"start":  func() error { return e.Start(t.Context()) },
		"renew":  func() error { return e.Renew(t.Context()) },
		"health": func() error { return e.WaitHealthy(t.Context()) },
		"equip":  func() error { return e.Equip(t.Context()) },
		"exec": func() error {
			_, err := e.Exec(t.Context(), sandbox.Command{Shell: "true"})
			return err
		},
		"verify": func() error { _, err := e.Verify(t.Context(), nil); return err },
	} {
		if err := do(); !errors.Is(err, environment.ErrClosed) {
			t.Errorf("%s: got %v, want that the environment is closed", name, err)
		}
	}
	if e.Sandbox() != nil || b.Live() != 0 || b.Count(fake.OpCreate) != 1 {
		t.Errorf("%d sandboxes are left, %d were made", b.Live(), b.Count(fake.OpCreate))
	}
}

func TestCloseCanBeRepeated(t *testing.T) {
	t.Parallel()
	e, b := open(t, "", fake.Config{Before: fake.FailAt(fake.OpDestroy, 1, nil)}, nil)
	start(t, e)
	if err := e.Close(t.Context()); err == nil {
		t.Error("the failure is not told")
	}
	if err := e.Close(t.Context()); err != nil || b.Live() != 0 {
		t.Errorf("again: %v, %d sandboxes are left", err, b.Live())
	}
}

func TestStartTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _ := open(t, "", fake.Config{Before: fake.HangAt(fake.OpCreate, 0)}, func(c *environment.Config) {
			c.StartLimit = environment.Limit{Sec: new(7.0)}
		})
		begun := time.Now()
		err := e.Start(t.Context())
		if exception.TypeOf(err) != exception.EnvironmentStartTimeoutError || err.Error() != "Environment start timed out after 7.0 seconds" || time.Since(begun) != 7*time.Second {
			t.Errorf("got %v after %s", err, time.Since(begun))
		}
	})
}

// TestRenew: a fresh sandbox is as the first one was when the agent began.
// Where the sandbox can be reset it is the same; where that fails, another.
func TestRenew(t *testing.T) {
	t.Parallel()
	t.Run("reset", func(t *testing.T) { t.Parallel(); testRenew(t, nil, 1) })
	t.Run("replaced", func(t *testing.T) { t.Parallel(); testRenew(t, fake.FailAt("reset", 0, nil), 2) })
}

func testRenew(t *testing.T, before fake.Fault, created int) {
	skill := t.TempDir()
	if err := os.WriteFile(filepath.Join(skill, "SKILL.md"), []byte("Tie."), 0o644); err != nil {
		t.Fatal(err)
	}
	checks := 0
	e, b := open(t, "[environment.healthcheck]\ncommand = \"well\"\n", fake.Config{Before: before, Rules: []fake.Rule{
		fake.On("well", func(context.Context, *fake.Process) (int, error) { checks++; return 0, nil }), granted,
	}}, func(c *environment.Config) {
		c.Uploads = []environment.Upload{{What: "a skill", Dir: skill, Target: "/skills/knots"}}
	})
	start(t, e)
	if _, err := e.Exec(t.Context(), sandbox.Command{Shell: "true"}); err != nil {
		t.Fatal(err)
	}
	if res, err := e.Verify(t.Context(), nil); err != nil || res.Rewards == nil || res.Evidence.Started == 0 {
		t.Fatalf("verification %+v, %v", res, err)
	}
	first := e.Sandbox()
	if err := e.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if (e.Sandbox() == first) != (created == 1) || b.Count(fake.OpCreate) != created || b.Count("reset") != 1 || b.Live() != 1 || checks != 2 || e.Used() != 0 {
		t.Errorf("%d sandboxes live, %d health checks, used %d times", b.Live(), checks, e.Used())
	}
	if got, err := b.Sandboxes()[0].ReadFile("/skills/knots/SKILL.md"); err != nil || string(got) != "Tie." {
		t.Errorf("the skill holds %q, %v", got, err)
	}
	if _, err := b.Sandboxes()[0].ReadFile("/tests/test.sh"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tests of the verification are still there: %v", err)
	}
	if left, err := os.ReadDir(e.LogDir(environment.VerifierLogs)); err != nil || len(left) != 0 {
		t.Errorf("left of the verification: %v, %v", left, err)
	}
}

// TestCommandsOfTheAgent run as its user and do not see the tests.
func TestCommandsOfTheAgent(t *testing.T) {
	t.Parallel()
	var ran []string
	e, _ := open(t, "[agent]\nuser = \"worker\"\n", fake.Config{Rules: []fake.Rule{
		granted,
		fake.Always(func(_ context.Context, p *fake.Process) (int, error) {
			ran = append(ran, p.User+": "+p.Command.Shell)
			return 0, nil
		}),
	}}, nil)
	start(t, e)
	for range 2 {
		if _, err := e.Exec(t.Context(), sandbox.Command{Shell: "look"}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Verify(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(ran) < 4 || ran[0] != "worker: look" || ran[len(ran)-1] != "worker: look" {
		t.Fatalf("ran %q", ran)
	}
	between := strings.Join(ran[1:len(ran)-1], "\n")
	for _, dir := range []string{"/tests", "/logs/verifier"} {
		if !strings.Contains(between, "root: ") || !strings.Contains(between, "find "+dir+" ") {
			t.Errorf("%s was not emptied before the agent's next command: %s", dir, between)
		}
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	e, b := open(t, "", fake.Config{}, nil)
	start(t, e)
	if hint, err := e.Keep(t.Context()); err != nil || hint == "" {
		t.Errorf("hint %q, %v", hint, err)
	}
	if _, err := e.Exec(t.Context(), sandbox.Command{Shell: "true"}); !errors.Is(err, environment.ErrClosed) {
		t.Errorf("a command afterwards: %v", err)
	}
	if n := b.Count(fake.OpDestroy); n != 0 {
		t.Error("the sandbox was removed")
	}
}
