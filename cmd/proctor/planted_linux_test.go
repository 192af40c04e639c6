package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/planted"
)

// TestPlanted replaces files of tasks, registries and trajectories by what is none, for
// every command that reads them: none waits for it, or reads a terabyte, and what needs
// the file names it.
func TestPlanted(t *testing.T) {
	t.Parallel()
	task := map[string]string{
		"task.toml": "", "instruction.md": "Do it.\n", "tests/test.sh": "true\n", "solution/solve.sh": "true\n",
		"environment/Dockerfile": "FROM scratch\n", "environment/data": "x",
	}
	old := map[string]string{"task.yaml": "instruction: Do it.\n", "Dockerfile": "FROM scratch\n", "run-tests.sh": "true\n", "solution.sh": "true\n"}
	trial := map[string]string{"result.json": `{"trial_name":"t","config":{"agent":{"name":"x"}}}`, "agent/trajectory.json": "{}"}
	every, both := func(string) bool { return true }, func(file string) bool { return file == "task.toml" || file == "instruction.md" }
	record := map[string]string{"trials/a/result.json": `{"status":"completed","score":1.0}`}
	result := func(file string) bool { return file == "result.json" }
	none := func(string) bool { return false }
	trajectory := func(file string) bool { return file != "result.json" } // of which only export knows
	for _, c := range []struct {
		name  string
		files map[string]string
		// args follow the name of the program; DIR and FILE stand for the paths.
		args string
		// of are the files that are replaced.
		of func(file string) bool
		// fails tells which of them the command needs; of others a sparse file alone may be
		// refused.
		fails func(file string) bool
	}{
		{"task validate", task, "task validate DIR", every, both},
		{"task show", task, "task show DIR", every, both},
		{"task check", task, "task check DIR -e docker", both, both},
		{"run", task, "run -p DIR -a nop -e docker -o DIR/jobs", both, both},
		{"mcp", task, "mcp DIR -e docker -o DIR/jobs", both, both},
		{"trial start", task, "trial start -p DIR -a nop -e docker --trials-dir DIR/trials", both, both},
		{"task migrate", old, "task migrate -i DIR -o DIR/out", every, every},
		{"traj show", trial, "traj show DIR", trajectory, every},
		{"traj validate", trial, "traj validate DIR", trajectory, every},
		{"traj export", trial, "traj export DIR", every, every},
		{"trial attach", trial, "trial attach DIR", result, every},
		{"ownrunner manifest", task, "ownrunner manifest DIR", every, none},
		{"ownrunner judge", record, "ownrunner judge --stdout /dev/null --exit-code 0 --attempt 1 DIR", every, none},
		{"traj convert", map[string]string{"gemini-cli.trajectory.json": "{}"}, "traj convert --agent gemini-cli DIR", every, every},
	} {
		for file := range c.files {
			if !c.of(file) {
				continue
			}
			for _, kind := range planted.Kinds() {
				t.Run(c.name+"/"+file+"/"+string(kind), func(t *testing.T) {
					t.Parallel()
					dir := filepath.Join(t.TempDir(), "t")
					planted.Files(t, dir, c.files)
					kind.Put(t, filepath.Join(dir, filepath.FromSlash(file)))
					code, said := runHere(t, strings.Fields(strings.ReplaceAll(c.args, "DIR", dir))...)
					if c.fails(file) && (code == exitOK || !strings.Contains(said, dir)) {
						t.Errorf("exit code %d, and it says %s", code, said)
					}
				})
			}
		}
	}
	for _, kind := range planted.Kinds() {
		if kind == planted.Pipe {
			continue // those that the user names are for their writers
		}
		for _, args := range []string{"dataset list --registry-path FILE", "run -a nop -c FILE", "run -a nop -p . --mcp-config FILE", "traj show FILE",
			"ownrunner judge --stdout FILE --exit-code 0 --attempt 1", "ownrunner manifest ../../examples/tasks --check FILE",
			"ownrunner run --task ../../examples/tasks --job-dir none --digest-manifest FILE", "ownrunner run --task . --job-dir none --policy FILE"} {
			t.Run(args+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "f.json")
				kind.Put(t, file)
				if kind == planted.Directory && strings.HasPrefix(args, "traj") {
					return // where trajectories are looked for
				}
				code, said := runHere(t, strings.Fields(strings.ReplaceAll(args, "FILE", file))...)
				if code == exitOK || !strings.Contains(said, file) {
					t.Errorf("exit code %d, and it says %s", code, said)
				}
			})
		}
	}
}

// runHere runs a command in this process, and returns all that it printed.
func runHere(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	var out strings.Builder
	home := t.TempDir()
	code = Run(t.Context(), Env{
		Args: append([]string{"proctor"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
		Environ: []string{"HOME=" + home, "PROCTOR_STATE_DIR=" + home}, Now: time.Now,
	})
	return code, out.String()
}
