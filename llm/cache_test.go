package llm_test

import (
	"testing"

	"github.com/proctor-run/proctor/llm"
)

func TestMarkLast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		n    int
		want string // of five messages, of which the first has a mark
	}{
		{"openai/gpt-x", 3, "x...."},
		{"anthropic/x", 3, "..xxx"},
		{"openrouter/CLAUDE-3", 1, "....x"},
		{"claude", 0, "....."},
		{"claude", 9, "xxxxx"},
	} {
		messages := make([]llm.Message, 5)
		messages[0].Cache = true
		got := ""
		for _, m := range llm.MarkLast(c.name, messages, c.n) {
			if m.Cache {
				got += "x"
			} else {
				got += "."
			}
		}
		if got != c.want {
			t.Errorf("%s, %d: %s, want %s", c.name, c.n, got, c.want)
		}
		if !messages[0].Cache || messages[4].Cache {
			t.Errorf("%s: the given messages were changed", c.name)
		}
	}
}
