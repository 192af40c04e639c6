package wire_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

func TestUsageOfEachProtocol(t *testing.T) {
	t.Parallel()
	gemini := func(raw json.RawMessage) (*llm.Usage, *float64) { return wire.GeminiUsage(raw), nil }
	for _, c := range []struct {
		name  string
		read  func(json.RawMessage) (*llm.Usage, *float64)
		raw   string
		usage *llm.Usage
		cost  *float64
	}{
		{"chat", wire.ChatUsage, `{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":2},"cost":0.5}`, &llm.Usage{Prompt: 9, Completion: 4, Cached: 3, CacheWrite: 2}, new(0.5)},
		{"chat with hits", wire.ChatUsage, `{"prompt_tokens":9,"prompt_cache_hit_tokens":8,"prompt_tokens_details":{"cached_tokens":0}}`, &llm.Usage{Prompt: 9, Cached: 8}, nil},
		{"chat with both", wire.ChatUsage, `{"prompt_tokens":9,"prompt_cache_hit_tokens":8,"prompt_tokens_details":{"cached_tokens":5}}`, &llm.Usage{Prompt: 9, Cached: 5}, nil},
		{"odd chat", wire.ChatUsage, `{"prompt_tokens":"9","completion_tokens":-4,"prompt_tokens_details":[],"cost":{"total":1}}`, &llm.Usage{}, nil},
		{"no cost", wire.ChatUsage, `{"cost":-1}`, &llm.Usage{}, nil},
		{"responses", wire.ResponsesUsage, `{"input_tokens":9,"output_tokens":4,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":2},"cost":0}`, &llm.Usage{Prompt: 9, Completion: 4, Cached: 3, CacheWrite: 2}, new(0.0)},
		{"Anthropic", wire.AnthropicUsage, `{"input_tokens":9,"output_tokens":4,"cache_read_input_tokens":30,"cache_creation_input_tokens":200,"cost":1}`, &llm.Usage{Prompt: 239, Completion: 4, Cached: 30, CacheWrite: 200}, new(1.0)},
		{"Anthropic without a cache", wire.AnthropicUsage, `{"input_tokens":9,"output_tokens":4,"cache_read_input_tokens":null}`, &llm.Usage{Prompt: 9, Completion: 4}, nil},
		{"Gemini", gemini, `{"promptTokenCount":9,"toolUsePromptTokenCount":1,"candidatesTokenCount":4,"thoughtsTokenCount":30,"cachedContentTokenCount":3}`, &llm.Usage{Prompt: 10, Completion: 34, Cached: 3}, nil},
		{"odd Gemini", gemini, `{"promptTokenCount":-9,"candidatesTokenCount":1e99,"thoughtsTokenCount":"4"}`, &llm.Usage{Prompt: -1, Completion: 1 << 53}, nil},
	} {
		usage, cost := c.read(json.RawMessage(c.raw))
		if !reflect.DeepEqual(usage, c.usage) || !reflect.DeepEqual(cost, c.cost) {
			t.Errorf("%s: %+v, %v", c.name, usage, cost)
		}
		for _, none := range []string{"", "null", "[]", `"9"`, "9", "{"} {
			if usage, cost := c.read(json.RawMessage(none)); usage != nil || cost != nil {
				t.Errorf("%s of %q: %+v, %v", c.name, none, usage, cost)
			}
		}
	}
}

func TestFinishOfEachProtocol(t *testing.T) {
	t.Parallel()
	responses := func(reason string) llm.Finish { return wire.ResponsesFinish(llm.Stopped, reason) }
	for _, c := range []struct {
		read   func(string) llm.Finish
		reason string
		want   llm.Finish
	}{
		{wire.ChatFinish, "stop", llm.Stopped},
		{wire.ChatFinish, "length", llm.Length},
		{wire.ChatFinish, "tool_calls", llm.CallsMade},
		{wire.ChatFinish, "function_call", llm.CallsMade},
		{wire.ChatFinish, "content_filter", llm.Filtered},
		{responses, "", llm.Stopped},
		{responses, "max_output_tokens", llm.Length},
		{responses, "content_filter", llm.Filtered},
		{wire.AnthropicFinish, "end_turn", llm.Stopped},
		{wire.AnthropicFinish, "pause_turn", llm.Stopped},
		{wire.AnthropicFinish, "max_tokens", llm.Length},
		{wire.AnthropicFinish, "model_context_window_exceeded", llm.Length},
		{wire.AnthropicFinish, "tool_use", llm.CallsMade},
		{wire.AnthropicFinish, "refusal", llm.Filtered},
		{wire.GeminiFinish, "STOP", llm.Stopped},
		{wire.GeminiFinish, "MAX_TOKENS", llm.Length},
		{wire.GeminiFinish, "SPII", llm.Filtered},
	} {
		if got := c.read(c.reason); got != c.want {
			t.Errorf("%s: %s", c.reason, got)
		}
	}
}
