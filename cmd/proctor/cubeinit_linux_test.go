package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
)

// containerModule makes a module with a cube whose tasks run in containers, and
// returns what runs programs in it, without a network. CGO_ENABLED is what it
// is by default.
func containerModule(t *testing.T) (dir string, run func(name string, args ...string) (string, error)) {
	t.Helper()
	parent := t.TempDir()
	dir, err := initCube(cubeInit{name: "shell-puzzles", parent: parent, module: "example.org/shell-puzzles", container: true})
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(repositoryPath(t, "go.sum"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "GOPROXY=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOWORK=off", "PROCTOR_STATE_DIR="+newPlace(t).state)
	run = func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("go", "mod", "edit", "-replace=github.com/proctor-run/proctor="+repositoryPath(t, ".")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir, run
}

// TestCubeInitContainer: the tests and the program of a new cube open sandboxes
// without settings for the build.
func TestCubeInitContainer(t *testing.T) { //nolint:tparallel // what both leave is looked at behind them
	t.Parallel()
	need.Patience(t)
	dir, run := containerModule(t)
	build := func(args ...string) {
		t.Helper()
		if out, err := run("go", args...); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	build("test", "-c", "-o", "cube.test", ".")
	build("build", "-o", "program", ".")
	for _, runtime := range []string{"gvisor", "runc"} {
		t.Run(runtime, func(t *testing.T) {
			if runtime == "runc" {
				need.Root(t)
				need.Program(t, "runc")
			}
			need.That(t, "host", hostSandboxes() == nil, "needs sandboxes on the host's files")
			for _, c := range []struct{ command, want string }{
				{"./cube.test -test.v -env host -runtime " + runtime, "--- PASS: TestConformance"},
				{"./program run -e host -o jobs --runtime " + runtime + " --job-name " + runtime, "Mean 1.000"},
			} {
				words := strings.Fields(c.command)
				if out, err := run(words[0], words[1:]...); err != nil || !strings.Contains(out, c.want) {
					t.Errorf("%s: %v\n%s\nwant %q", c.command, err, out, c.want)
				}
			}
		})
	}
	if left, err := filepath.Glob(filepath.Join(dir, "jobs", "*", "*__*", "result.json")); err != nil || len(left) == 0 {
		t.Errorf("the jobs have no results: %q, %v", left, err)
	}
}

// TestForgottenHook: a program that lacks the call is refused sandboxes, with
// the call's name, and is not executed inside one.
func TestForgottenHook(t *testing.T) {
	t.Parallel()
	need.Patience(t)
	dir, run := containerModule(t)
	path := filepath.Join(dir, "cube_test.go")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const hook = "func TestMain(m *testing.M) { sandboxes.TestMain(m) }\n"
	if !strings.Contains(string(text), hook) {
		t.Fatalf("the test has no hook:\n%s", text)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), hook, "", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, environment := range []string{"auto", "host", "sandbox", "docker"} {
		out, err := run("go", "test", ".", "-env", environment)
		if err == nil || !strings.Contains(out, "call sandboxes.TestMain from TestMain") || strings.Count(out, "--- FAIL") != 1 {
			t.Errorf("environment %s: %v\n%s", environment, err, out)
		}
	}
}
