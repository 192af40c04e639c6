package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/providers"
	"github.com/proctor-run/proctor/value"
)

// start serves a script and returns its address, and a function that ends it and returns
// what it reported.
func start(t *testing.T, args ...string) (address string, end func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var report strings.Builder
	done := make(chan error, 1)
	go func() { done <- run(ctx, args, w, &report) }()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), func() string {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		return report.String()
	}
}

func TestBashScript(t *testing.T) {
	t.Parallel()
	address, end := start(t, "-key", "sesame-1234", "bash.json")
	m, err := providers.Dial(llm.Endpoint{Name: "fake/m", Model: "m", API: llm.Chat, Base: address + "/v1", Key: "sesame-1234"})
	if err != nil {
		t.Fatal(err)
	}
	req := &llm.Request{
		Messages: []llm.Message{llm.TextMessage(llm.User, "Write hello.txt.")},
		Tools:    []llm.ToolSpec{{Name: "bash", Parameters: value.NewObject(0)}},
	}
	first, err := m.Complete(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	calls := first.Message.Calls
	if len(calls) != 1 || !strings.Contains(calls[0].Arguments, `> hello.txt && cat hello.txt`) {
		t.Fatalf("calls = %+v", calls)
	}
	result := llm.TextMessage(llm.Tool, "Hello, world!\n")
	result.CallID = calls[0].ID
	req.Messages = append(req.Messages, first.Message, result)
	last, err := m.Complete(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if got := last.Message.Text(); !strings.HasPrefix(got, "hello.txt is there") {
		t.Errorf("last answer = %q", got)
	}
	report := end()
	if !strings.HasPrefix(report, `model "m" key "…1234": requests 2, answers 2, prompt tokens `) {
		t.Errorf("report = %q", report)
	}
}

func TestTerminusScriptIsJSON(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("terminus.json")
	if err != nil {
		t.Fatal(err)
	}
	var script struct {
		Rules []struct {
			Answer struct{ Text string }
		}
	}
	if err := json.Unmarshal(data, &script); err != nil {
		t.Fatal(err)
	}
	for i, rule := range script.Rules {
		var answer struct {
			Commands []struct{ Keystrokes string }
			Complete bool `json:"task_complete"`
		}
		if err := json.Unmarshal([]byte(rule.Answer.Text), &answer); err != nil {
			t.Errorf("answer %d: %v", i, err)
		}
		if (len(answer.Commands) == 0) != answer.Complete {
			t.Errorf("answer %d does nothing", i)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"a.json", "b.json"}, {"missing.json"}, {"main.go"}, {"-listen", "nowhere", "bash.json"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("run(%q) did not fail", args)
		}
	}
}
