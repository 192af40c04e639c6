package main

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/llm/providers"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestRun: the model calls a command in the sandbox and stops, and what it used is what the
// server counted.
func TestRun(t *testing.T) {
	t.Parallel()
	model := &llmtest.Server{Key: "key", Answer: func(r *llmtest.Request) llmtest.Turn {
		if r.Turn == 0 {
			return llmtest.Turn{Calls: []llm.ToolCall{{Name: "bash", Arguments: `{"command": "solve-it"}`}}}
		}
		return llmtest.Turn{Calls: []llm.ToolCall{{Name: "final_step", Arguments: "{}"}}}
	}}
	server := httptest.NewServer(model)
	defer server.Close()
	client := &llm.Client{Dial: providers.Dial, Lookup: func(name string) (string, bool) {
		v, ok := map[string]string{"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": server.URL + "/v1"}[name]
		return v, ok
	}}
	solved := false
	backend := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{
		fake.On("solve-it", func(context.Context, *fake.Process) (int, error) { solved = true; return 0, nil }),
		fake.On("test.sh", fake.Write("/logs/verifier/reward.txt", "1")),
	}})
	defer fake.Verify(t, backend)
	task := filepath.Join(t.TempDir(), "task")
	for name, text := range map[string]string{
		"task.toml": "[environment]\ndocker_image = \"x\"\n", "instruction.md": "Solve it.", "environment/.keep": "", "tests/test.sh": "", "solution/solve.sh": "",
	} {
		file := filepath.Join(task, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run(t.Context(), &out, backend, client, t.TempDir(), "openai/gpt-5-mini", filepath.Dir(task)); err != nil {
		t.Fatal(err)
	}
	used := model.Counts()[llmtest.Account{Model: "gpt-5-mini", Key: "key"}]
	if used.Requests != 2 || !solved {
		t.Errorf("%d requests, solved %v", used.Requests, solved)
	}
	if got, want := out.String(), "task {'reward': 1.0}, "; !strings.HasPrefix(got, want) || strings.Contains(got, "unknown") {
		t.Errorf("printed %q, want %q first, and tokens", got, want)
	}
}
