package scheduler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox/fake"
)

var now = time.Date(2026, 6, 9, 8, 0, 0, 0, time.UTC)

func writeTask(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{
		"task.toml": "", "instruction.md": "Do it.", "environment/Dockerfile": "FROM x\n",
		"tests/test.sh": "true\n", "solution/solve.sh": "true\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCarried runs a trial that was planned elsewhere; its first sandbox cannot
// be made, and the second is.
func TestCarried(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeTask(t, filepath.Join(dir, "set", "one"))
	cfg, err := ReadConfig([]byte("job_name: j\njobs_dir: "+filepath.Join(dir, "jobs")+"\ndatasets: [{path: "+filepath.Join(dir, "set")+"}]\n"), now)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Retry = Patient(2)
	message, notes, err := Pack(cfg, now)
	if err != nil || len(notes) != 0 {
		t.Fatal(notes, err)
	}
	p, err := Unpack(message)
	if err != nil {
		t.Fatal(err)
	}
	backend := fake.New(fake.Config{
		Dir:    t.TempDir(),
		Before: fake.FailAt(fake.OpCreate, 1, nil),
		Rules:  []fake.Rule{fake.On("/tests/test.sh", fake.Write("/logs/verifier/reward.txt", "1"))},
	})
	defer fake.Verify(t, backend)
	result, attempts, err := Run(t.Context(), backend, p, 0)
	if err != nil || attempts != 2 || result.VerifierResult == nil {
		t.Fatalf("%d attempts, %+v, %v", attempts, result, err)
	}
	if got := Where(result.TaskID); filepath.Base(got) != "one" {
		t.Errorf("the task comes from %q", got)
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	policy := Patient(1)
	for _, tt := range []struct {
		exception string
		retries   int
		want      string
	}{
		{"", 0, "ended well"}, {exception.AgentTimeoutError, 0, "does not ask"}, {"RuntimeError", 1, "all its attempts"}, {"RuntimeError", 0, "again after 1s"},
	} {
		if got := Why(policy.Decide(tt.exception, tt.retries)); !strings.Contains(got, tt.want) {
			t.Errorf("%q after %d retries: %q", tt.exception, tt.retries, got)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	path := "somewhere/hello"
	names, err := Names(jobdir.NewConfig(now), []jobdir.Task{{Config: jobdir.TaskConfig{Path: &path}}}, func(int) int { return 0 })
	if err != nil || len(names) != 1 || names[0] != "hello__2222222" {
		t.Errorf("%q, %v", names, err)
	}
}
