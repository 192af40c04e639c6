package wire

import (
	"encoding/json"

	"github.com/proctor-run/proctor/llm"
)

// ChatUsage reads the usage object of a chat completion, and the cost in US dollars that
// some servers tell in it. Either is nil where it is not told.
func ChatUsage(raw json.RawMessage) (*llm.Usage, *float64) {
	usage := Object(raw)
	if usage == nil {
		return nil, nil
	}
	details := Object(usage["prompt_tokens_details"])
	out := &llm.Usage{
		Prompt: usage.Whole("prompt_tokens"), Completion: usage.Whole("completion_tokens"),
		Cached: details.Whole("cached_tokens"), CacheWrite: details.Whole("cache_write_tokens"),
	}
	if out.Cached == 0 {
		out.Cached = usage.Whole("prompt_cache_hit_tokens")
	}
	return out, usage.Number("cost")
}

// ResponsesUsage reads the usage object of a response, and the cost in US dollars that
// some servers tell in it. Either is nil where it is not told.
func ResponsesUsage(raw json.RawMessage) (*llm.Usage, *float64) {
	usage := Object(raw)
	if usage == nil {
		return nil, nil
	}
	details := Object(usage["input_tokens_details"])
	return &llm.Usage{
		Prompt: usage.tokens("input_tokens"), Completion: usage.tokens("output_tokens"),
		Cached: details.tokens("cached_tokens"), CacheWrite: details.tokens("cache_write_tokens"),
	}, usage.Number("cost")
}

// AnthropicUsage reads the usage object of a message, and the cost in US dollars that
// some servers tell in it. Either is nil where it is not told.
func AnthropicUsage(raw json.RawMessage) (*llm.Usage, *float64) {
	return anthropicUsage(Object(raw))
}

// The members of a message's usage. What was read from the cache, or written to it, is not
// in the input tokens.
const (
	anthropicInput  = "input_tokens"
	anthropicOutput = "output_tokens"
	anthropicRead   = "cache_read_input_tokens"
	anthropicWrite  = "cache_creation_input_tokens"
)

func anthropicUsage(usage Members) (*llm.Usage, *float64) {
	if usage == nil {
		return nil, nil
	}
	read, written := usage.tokens(anthropicRead), usage.tokens(anthropicWrite)
	return &llm.Usage{
		Prompt: usage.tokens(anthropicInput) + read + written, Completion: usage.tokens(anthropicOutput),
		Cached: read, CacheWrite: written,
	}, usage.Number("cost")
}

// GeminiUsage reads the object usageMetadata; nil where it is not told.
func GeminiUsage(raw json.RawMessage) *llm.Usage {
	usage := Object(raw)
	if usage == nil {
		return nil
	}
	return &llm.Usage{
		Prompt:     usage.tokens("promptTokenCount") + usage.tokens("toolUsePromptTokenCount"),
		Completion: usage.tokens("candidatesTokenCount") + usage.tokens("thoughtsTokenCount"),
		Cached:     usage.tokens("cachedContentTokenCount"),
	}
}

// tokens is a member that counts tokens. A number that cannot be right stays one, within
// bounds, so that [llm.Response.Believable] sees it.
func (m Members) tokens(key string) int64 {
	var f float64
	if json.Unmarshal(m[key], &f) != nil {
		return 0
	}
	return int64(max(-1, min(f, 1<<53)))
}

// ChatFinish is why a chat completion ended.
func ChatFinish(reason string) llm.Finish {
	switch reason {
	case "length":
		return llm.Length
	case "tool_calls", "function_call":
		return llm.CallsMade
	case "content_filter":
		return llm.Filtered
	}
	return llm.Stopped
}

// ResponsesFinish is why a response ended that is incomplete: for the reason in its
// incomplete_details or, where that is another one, as it else seems to have.
func ResponsesFinish(seen llm.Finish, reason string) llm.Finish {
	switch reason {
	case "max_output_tokens":
		return llm.Length
	case "content_filter":
		return llm.Filtered
	}
	return seen
}

// AnthropicFinish is why a message ended.
func AnthropicFinish(reason string) llm.Finish {
	switch reason {
	case "max_tokens", "model_context_window_exceeded":
		return llm.Length
	case "tool_use":
		return llm.CallsMade
	case "refusal":
		return llm.Filtered
	}
	return llm.Stopped
}

// GeminiFinish is why a candidate ended.
func GeminiFinish(reason string) llm.Finish {
	switch reason {
	case "MAX_TOKENS":
		return llm.Length
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY":
		return llm.Filtered
	}
	return llm.Stopped
}
