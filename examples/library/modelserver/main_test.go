package main

import (
	"bufio"
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/llm/providers"
)

// TestServe: a program that has the variables alone calls the model, and what it used is
// told.
func TestServe(t *testing.T) {
	t.Parallel()
	model := &llmtest.Server{Key: "the real key", Answer: func(*llmtest.Request) llmtest.Turn {
		return llmtest.Turn{Text: "hello", Usage: &llm.Usage{Prompt: 70, Completion: 7}}
	}}
	provider := httptest.NewServer(model)
	defer provider.Close()
	owner := &llm.Client{Dial: providers.Dial, Lookup: variables("OPENAI_API_KEY=the real key", "OPENAI_BASE_URL="+provider.URL+"/v1")}

	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- serve(ctx, w, owner, "openai/some-model", llm.Budget{Tokens: 100})
		_ = w.Close()
	}()
	out := bufio.NewScanner(r)
	var vars []string
	for len(vars) == 0 || !strings.HasPrefix(vars[len(vars)-1], "OPENAI_API_BASE=") {
		if !out.Scan() {
			t.Fatal(<-served)
		}
		vars = append(vars, strings.TrimPrefix(out.Text(), "export "))
	}
	told := make(chan string, 1)
	go func() {
		last := ""
		for out.Scan() {
			last = out.Text()
		}
		told <- last
	}()
	program := &llm.Client{Dial: providers.Dial, Lookup: variables(vars...)}
	m, err := program.Open("openai/some-model", llm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ask := &llm.Request{Messages: []llm.Message{llm.TextMessage(llm.User, "Hi.")}}
	for range 2 { // the first is below the budget, the second begins below it
		if a, err := m.Complete(t.Context(), ask); err != nil || a.Message.Text() != "hello" {
			t.Fatalf("got %+v, %v", a, err)
		}
	}
	if _, err := m.Complete(t.Context(), ask); err == nil || !strings.Contains(err.Error(), "the budget of the job is used up") {
		t.Errorf("beyond the budget: got %v", err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if got := <-told; got != "2 calls, 140 tokens in, 14 out" {
		t.Errorf("told %q", got)
	}
}

// variables finds KEY=VALUE assignments, later ones first.
func variables(vars ...string) func(string) (string, bool) {
	return func(name string) (value string, found bool) {
		for _, assignment := range vars {
			if key, v, _ := strings.Cut(assignment, "="); key == name {
				value, found = v, true
			}
		}
		return value, found
	}
}
