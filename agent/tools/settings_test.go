package tools_test

import (
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/tools"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/value"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	registry := agent.Registry{tools.Entry()}
	for _, c := range []struct {
		name     string
		model    string
		settings []any
		want     string // part of the error, empty for none
	}{
		{"plain", "p/m", nil, ""},
		{"all", "p/m", []any{"system_prompt", "", "max_output_tokens", 5, "max_tokens", 9, "keep_images", 0, "interleaved_thinking", true, "max_steps", 3, "temperature", 0.5}, ""},
		{"no model", "", nil, "needs a model: give it as -m provider/model"},
		{"no tokens", "p/m", []any{"max_tokens", 0}, "max_tokens is 0, want a whole number from 1 to 1099511627776"},
		{"half a token", "p/m", []any{"max_output_tokens", 0.5}, "max_output_tokens is 0.5, want a whole number"},
		{"too many", "p/m", []any{"max_tokens", cube.Value(value.Str("many"))}, "max_tokens is 'many', want a whole number"},
		{"negative images", "p/m", []any{"keep_images", -1}, "keep_images is -1, want a whole number from 0 to 1099511627776"},
		{"thinking", "p/m", []any{"interleaved_thinking", "yes"}, "interleaved_thinking is 'yes', want true or false"},
		{"no steps", "p/m", []any{"max_steps", 0}, "max_steps is 0, want a whole number from 1"},
		{"temperature", "p/m", []any{"temperature", "hot"}, "temperature is 'hot'"},
		{"misspelt", "p/m", []any{"max_token", 3}, "did you mean max_tokens?"},
		{"prompt that is a number", "p/m", []any{"system_prompt", 3}, "system_prompt is 3, want text"},
	} {
		for _, stepped := range []bool{false, true} {
			err := registry.Check(agent.Config{Name: "tools", Model: c.model, Settings: cube.Pairs(c.settings...)}, stepped)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, stepped %v: %v, want %q", c.name, stepped, err, c.want)
			}
		}
	}
}

// TestNoModels: a program without models says so.
func TestNoModels(t *testing.T) {
	t.Parallel()
	c := agent.Config{Name: "tools", Model: "p/m"}
	if _, err := tools.Entry().Stepped(c); err == nil || !strings.Contains(err.Error(), "gives its agents no models") {
		t.Errorf("stepped: %v", err)
	}
	if _, err := tools.Entry().Sandboxed(c); err == nil || !strings.Contains(err.Error(), "gives its agents no models") {
		t.Errorf("sandboxed: %v", err)
	}
}

// TestCancelled: a call that is ended ends the episode with why.
