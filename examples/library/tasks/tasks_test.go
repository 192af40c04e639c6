package tasks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// write makes a directory of files and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hello")
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func hello(t *testing.T, toml string) string {
	return write(t, map[string]string{
		"task.toml": toml, "instruction.md": "Say hello.", "environment/Dockerfile": "FROM debian:12\n",
		"tests/test.sh": "#!/bin/bash\n",
	})
}

func TestChecksum(t *testing.T) {
	t.Parallel()
	sum, _, err := Checksum(hello(t, ""))
	if err != nil || len(sum) != 64 {
		t.Errorf("checksum %q, %v", sum, err)
	}
	if _, problems, err := Checksum(hello(t, "[agent]\ntimeout_sec = \"soon\"\n")); err == nil || len(problems) != 1 {
		t.Errorf("a task with a wrong limit: problems %q, %v", problems, err)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	names, err := Files(filepath.Join(hello(t, ""), "environment"))
	if err != nil || !slices.Contains(names, "Dockerfile") {
		t.Errorf("files %q, %v", names, err)
	}
}

func TestDatasets(t *testing.T) {
	t.Parallel()
	names, err := Datasets([]byte(`[{"name": "words", "version": "1.0", "description": "", "tasks": []}]`))
	if err != nil || !slices.Equal(names, []string{"words: 0 tasks in git, 0 on this machine"}) {
		t.Errorf("data sets %q, %v", names, err)
	}
}

func TestConvert(t *testing.T) {
	t.Parallel()
	in := write(t, map[string]string{
		"task.yaml": "instruction: Say hello.\n", "Dockerfile": "FROM debian:12\n", "run-tests.sh": "true\n", "solution.sh": "true\n",
		"docker-compose.yaml": "services: {}\n", "tests/test_outputs.py": "",
	})
	mapped, err := Convert(t.Context(), in, t.TempDir())
	if err != nil || !slices.Equal(mapped, []string{"hello"}) {
		t.Errorf("converted %q, %v", mapped, err)
	}
}

func TestScalar(t *testing.T) {
	t.Parallel()
	r, err := reward.ParseJSON([]byte(`{"reward": 0.5}`), reward.JSONFile)
	if err != nil {
		t.Fatal(err)
	}
	if x, err := Scalar(r); err != nil || x != 0.5 {
		t.Errorf("scalar %g, %v", x, err)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	if n := len(Plan(3)); n < 4 {
		t.Errorf("%d trials, want three of the solution and one of no work", n)
	}
}

func TestTry(t *testing.T) {
	t.Parallel()
	b := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{
		fake.On("/tests/test.sh", fake.Write("/logs/verifier/reward.txt", "1\n")),
	}})
	defer fake.Verify(t, b)
	got, err := Try(t.Context(), b, hello(t, ""), "echo hello")
	if want := "{'reward': 1.0}, the tests exited with 0"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestContents(t *testing.T) {
	t.Parallel()
	packages, files, err := Contents("[dataset]\nname = \"org/words\"\n\n[[tasks]]\nname = \"org/one\"\ndigest = \"sha256:" + strings.Repeat("0", 64) + "\"\n")
	if err != nil || len(packages) != 1 || len(files) != 0 {
		t.Errorf("%v, %v, %v", packages, files, err)
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	task := &harbor.Task{}
	if got := Needs(task); got != "Linux, its tests run in the agent's sandbox" {
		t.Errorf("%s", got)
	}
	task.Config.Environment.OS = harbor.Windows
	if got := Needs(task); !strings.HasPrefix(got, "Windows") {
		t.Errorf("%s", got)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	task := &harbor.Task{}
	task.Config.Environment.Env.Set("KEY", "${TOKEN}")
	task.Config.Environment.Env.Set("PLAIN", "text")
	if got := Variables(task); len(got) != 1 || got[0].Name != "TOKEN" {
		t.Errorf("%+v", got)
	}
}
