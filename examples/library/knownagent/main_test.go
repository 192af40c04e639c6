package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/sandbox/fake"
)

const agentFile = `
name = "mine"
summary = "solves it"
output = "mine.txt"
[install]
script = "install-it"
[check]
command = "mine --version"
pattern = '\d+\.\d+'
[model]
required = false
[run]
command = "mine --solve"
`

// TestRun: the program is installed before the first job alone.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mine.toml":               agentFile,
		"set/task/task.toml":      "[environment]\ndocker_image = \"x\"\n",
		"set/task/instruction.md": "Solve it.", "set/task/environment/.keep": "", "set/task/tests/test.sh": "",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"installing mine for x, once for all trials\ninstalled mine 1.5 for x", "1 of 1 trials have a reward\n"} {
		backend := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{
			fake.On("command -v -- mine", fake.Exit(1)),
			fake.On("install-it", fake.Write("/installed-agent/mine/bin/mine", "program")),
			fake.On("mine --version", fake.Print("mine 1.5\n")),
			fake.On("mine --solve", fake.Exit(0)),
			fake.On("test.sh", fake.Write("/logs/verifier/reward.txt", "1")),
		}})
		var out strings.Builder
		if err := run(t.Context(), &out, backend, &llm.Client{}, dir, filepath.Join(dir, "mine.toml"), "", filepath.Join(dir, "set")); err != nil {
			t.Fatal(err)
		}
		fake.Verify(t, backend)
		if got := out.String(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "1 of 1 trials have a reward\n") {
			t.Errorf("run %d printed %q, want %q", i, got, want)
		}
	}
}
