package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
)

// TestReplayModels: a run is replayed when the server and the key are gone, and what is
// wrong with the flags is said before anything is done.
func TestReplayModels(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	run := func(env []string, args ...string) finished {
		cmd := p.command(append([]string{"cube", "run", "arithmetic-cube", "--only", "mul-6-7", "-a", "tools", "-o", "jobs"}, args...)...)
		cmd.Env = append(cmd.Env, env...)
		return finish(t, cmd)
	}
	server := httptest.NewServer(&llmtest.Server{Key: "the-key-of-the-server", Answer: func(*llmtest.Request) llmtest.Turn {
		return llmtest.Turn{Calls: []llm.ToolCall{{Name: "submit_answer", Arguments: `{"answer": 42}`}}}
	}})
	recorded := run([]string{"OPENAI_API_KEY=the-key-of-the-server", "OPENAI_BASE_URL=" + server.URL + "/v1"}, "-m", "openai/a", "--job-name", "recorded", "--fail-under", "1")
	server.Close()
	if recorded.code != 0 {
		t.Fatalf("the recorded run: %+v", recorded)
	}
	gone := []string{"OPENAI_API_KEY=", "OPENAI_BASE_URL="}
	for _, c := range []struct {
		name, want string
		code       int
		args       []string
	}{
		{"replayed", "", 0, []string{"-m", "openai/a", "--job-name", "again", "--replay-models", "jobs/recorded", "--replay-models-strict", "--fail-under", "1"}},
		{"replayed again", "", 0, []string{"-m", "openai/a", "--job-name", "once-more", "--replay-models", "jobs/again", "--fail-under", "1"}},
		{"not replayed", "there is no key", 2, []string{"-m", "openai/a", "--job-name", "called"}},
		{"another model", llm.ReplayDivergedError, 3, []string{"-m", "openai/b", "--job-name", "other", "--replay-models", "jobs/recorded"}},
		{"no such directory", `--replay-models: there is no directory "jobs/none"`, 2, []string{"-m", "openai/a", "--job-name", "none", "--replay-models", "jobs/none"}},
		{"strict alone", "--replay-models-strict is about the recordings of --replay-models", 2, []string{"-m", "openai/a", "--job-name", "none", "--replay-models-strict"}},
	} {
		got := run(gone, c.args...)
		if got.code != c.code || !strings.Contains(got.stdout+got.stderr, c.want) {
			t.Errorf("%s: %+v, want code %d and %q", c.name, got, c.code, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "jobs", "none")); err == nil {
		t.Error("a refused run has a directory")
	}
	found, err := filepath.Glob(filepath.Join(p.dir, "jobs", "again", "*", "agent", jobdir.ModelCallsFile))
	if err != nil || len(found) != 1 {
		t.Errorf("the recordings of a replay are %v, %v", found, err)
	}
}
