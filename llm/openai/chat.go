package openai

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
	"github.com/proctor-run/proctor/value"
)

type chatModel struct{ model }

// Complete asks for the next message.
func (m *chatModel) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	var answer sdk.ChatCompletion
	x, err := m.Ask(ctx, req, wire.Call{
		Build: func(without map[string]bool) *wire.Body { return m.body(req, without) },
		Send:  m.post("chat/completions", &answer),
	})
	if err != nil {
		return nil, err
	}
	if len(answer.Choices) == 0 {
		return nil, m.Unusable(x, "the answer has no choice")
	}
	if raw := answer.Choices[0].JSON.ExtraFields["error"].Raw(); strings.HasPrefix(raw, "{") {
		x.Body = []byte(`{"error":` + raw + `}`)
		return nil, m.Unusable(x, "the answer is an error")
	}
	return chatResponse(req, &answer), nil
}

func (m *chatModel) body(req *llm.Request, without map[string]bool) *wire.Body {
	b := &wire.Body{}
	b.Set("model", m.Model)
	b.Set("messages", m.messages(req))
	if len(req.Tools) > 0 {
		b.Set("tools", chatTools(req.Tools))
	}
	if req.MaxOutput > 0 {
		// Servers of others know the older word better.
		key := "max_tokens"
		if without[key] || m.Base == "" && !without["max_completion_tokens"] {
			key = "max_completion_tokens"
		}
		b.Set(key, req.MaxOutput)
	}
	set := func(key string, wanted bool, v any) {
		if wanted && !without[key] {
			b.Set(key, v)
		}
	}
	set("temperature", req.Temperature != nil, req.Temperature)
	set("reasoning_effort", hasEffort(req), req.Effort)
	set("thinking", req.ThinkingTokens > 0 && m.marked(),
		map[string]any{"type": "enabled", "budget_tokens": max(1024, req.ThinkingTokens)})
	set("logprobs", req.Tokens, true)
	set("return_token_ids", req.Tokens, true)
	set("session_id", req.SessionID != "", req.SessionID)
	return b
}

// marked: the model is one that caches what is marked.
func (m *chatModel) marked() bool {
	return llm.NeedsCacheMarks(m.Name) || llm.NeedsCacheMarks(m.Model)
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   any        `json:"content"` // a text, a list of parts, or nil
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []chatCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
}

type chatPart struct {
	Type  string        `json:"type"`
	Text  *string       `json:"text,omitempty"`
	Image *chatImage    `json:"image_url,omitempty"`
	Cache *cacheControl `json:"cache_control,omitempty"`
}

type chatImage struct {
	URL string `json:"url"`
}

type cacheControl struct {
	Type string `json:"type"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// maxMarks is how many marks a provider takes in one request.
const maxMarks = 4

// messages are those of the request. The pictures of results, for which the protocol has
// no place, come in a message of the user's after the results.
func (m *chatModel) messages(req *llm.Request) []json.RawMessage {
	var out []json.RawMessage
	var pictures []llm.Part
	marks := m.marks(req.Messages)
	add := func(msg any) {
		if data, err := wire.JSON(msg); err == nil {
			out = append(out, data)
		}
	}
	flush := func() {
		if len(pictures) > 0 {
			add(chatMessage{Role: "user", Content: chatParts(pictures, 0)})
			pictures = nil
		}
	}
	for i := range req.Messages {
		msg := &req.Messages[i]
		if msg.Role != llm.Tool {
			flush()
		}
		if native := wire.Native(msg, llm.Chat); native != nil && marks[i] == 0 {
			out = append(out, native)
			continue
		}
		add(chatOf(msg, req.SendReasoning, marks[i]))
		if msg.Role == llm.Tool {
			pictures = append(pictures, wire.Images(msg)...)
		}
	}
	flush()
	return out
}

// marks tells how many of the last parts of each message are marked.
func (m *chatModel) marks(messages []llm.Message) []int {
	out := make([]int, len(messages))
	if !m.marked() {
		return out
	}
	left := maxMarks
	for i, msg := range slices.Backward(messages) {
		if msg.Cache {
			parts := max(len(msg.Parts), 1)
			if msg.Role == llm.Tool {
				parts = 1
			}
			out[i] = min(left, parts)
			left -= out[i]
		}
	}
	return out
}

func chatOf(msg *llm.Message, reasoning bool, marks int) chatMessage {
	out := chatMessage{Role: string(msg.Role), CallID: msg.CallID}
	parts := msg.Parts
	if msg.Role == llm.Tool {
		parts = []llm.Part{{Text: wire.Result(msg)}}
	}
	for _, c := range msg.Calls {
		out.Calls = append(out.Calls, chatCall{c.ID, "function", chatFunction{c.Name, c.Arguments}})
	}
	switch {
	case len(parts) == 0 && len(out.Calls) > 0:
		out.Content = nil
	case len(parts) == 0:
		out.Content = ""
	case len(parts) == 1 && parts[0].Image == nil && marks == 0:
		out.Content = parts[0].Text
	default:
		out.Content = chatParts(parts, marks)
	}
	if reasoning && msg.Role == llm.Assistant {
		out.Reasoning = msg.Reasoning
	}
	return out
}

func chatParts(parts []llm.Part, marks int) []chatPart {
	out := make([]chatPart, len(parts))
	for i, p := range parts {
		if p.Image != nil {
			out[i] = chatPart{Type: "image_url", Image: &chatImage{URL: wire.PictureOf(p.Image).Link()}}
		} else {
			out[i] = chatPart{Type: "text", Text: &p.Text}
		}
		if i >= len(parts)-marks {
			out[i].Cache = &cacheControl{Type: "ephemeral"}
		}
	}
	return out
}

func chatTools(tools []llm.ToolSpec) []any {
	out := make([]any, len(tools))
	for i, t := range tools {
		function := map[string]any{"name": t.Name, "parameters": wire.Schema(t.Parameters)}
		if t.Description != "" {
			function["description"] = t.Description
		}
		out[i] = map[string]any{"type": "function", "function": function}
	}
	return out
}

func chatResponse(req *llm.Request, answer *sdk.ChatCompletion) *llm.Response {
	choice := &answer.Choices[0]
	msg := &choice.Message
	out := &llm.Response{
		ID: answer.ID, Model: answer.Model, Finish: chatFinish(choice.FinishReason),
		Message: llm.Message{Role: llm.Assistant},
	}
	said, thought := chatContent(msg)
	if said == "" {
		said = msg.Refusal
	}
	if said != "" {
		out.Message.Parts = []llm.Part{{Text: said}}
	}
	extra := msg.JSON.ExtraFields
	for _, key := range []string{"reasoning_content", "reasoning"} {
		if thought == "" {
			thought = text(extra, key)
		}
	}
	out.Message.Reasoning = thought
	ids := wire.NewIDs(req.Messages)
	for _, c := range msg.ToolCalls {
		out.Message.Calls = append(out.Message.Calls, llm.ToolCall{
			ID: ids.For(c.ID), Name: c.Function.Name, Arguments: c.Function.Arguments,
		})
	}
	if len(out.Message.Calls) > 0 && out.Finish == llm.Stopped {
		out.Finish = llm.CallsMade
	}
	out.Message.Native = chatNative(msg)
	chatUsage(out, answer)
	for _, t := range choice.Logprobs.Content {
		out.LogProbs = append(out.LogProbs, t.Logprob)
	}
	out.CompletionTokenIDs = numbers(choice.JSON.ExtraFields, "token_ids")
	out.PromptTokenIDs = numbers(answer.JSON.ExtraFields, "prompt_token_ids")
	out.Extra = chatExtra(answer.JSON.ExtraFields, choice.JSON.ExtraFields)
	return out
}

func chatFinish(reason string) llm.Finish {
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

// chatContent reads the content: a text or, of some servers, a list of parts, of which
// those of the type "thinking" are reasoning.
func chatContent(msg *sdk.ChatCompletionMessage) (said, thought string) {
	raw := msg.JSON.Content.Raw()
	if !strings.HasPrefix(raw, "[") {
		return msg.Content, ""
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if json.Unmarshal([]byte(raw), &parts) != nil {
		return "", ""
	}
	for _, p := range parts {
		said += p.Text
		var inner []struct {
			Text string `json:"text"`
		}
		if p.Type == "thinking" && json.Unmarshal(p.Thinking, &inner) == nil {
			for _, t := range inner {
				thought += t.Text
			}
		}
	}
	return said, thought
}

// chatNative keeps a message that has something only its provider can read: the details
// of reasoning of gateways, and what they add to calls.
func chatNative(msg *sdk.ChatCompletionMessage) *llm.Native {
	details := msg.JSON.ExtraFields["reasoning_details"].Raw()
	signed := strings.Contains(msg.JSON.ToolCalls.Raw(), `"extra_content"`)
	if !strings.HasPrefix(details, "[") && !signed {
		return nil
	}
	kept := map[string]json.RawMessage{"role": json.RawMessage(`"assistant"`), "content": json.RawMessage("null")}
	for key, raw := range map[string]string{
		"content": msg.JSON.Content.Raw(), "tool_calls": msg.JSON.ToolCalls.Raw(), "reasoning_details": details,
	} {
		if raw != "" && raw != "null" {
			kept[key] = json.RawMessage(raw)
		}
	}
	data, err := wire.JSON(kept)
	if err != nil {
		return nil
	}
	return &llm.Native{API: llm.Chat, Content: data}
}

func chatUsage(out *llm.Response, answer *sdk.ChatCompletion) {
	u := answer.Usage
	if !answer.JSON.Usage.Valid() {
		return
	}
	details := u.PromptTokensDetails.JSON.ExtraFields
	out.Usage = &llm.Usage{
		Prompt: u.PromptTokens, Completion: u.CompletionTokens,
		Cached: u.PromptTokensDetails.CachedTokens, CacheWrite: u.PromptTokensDetails.CacheWriteTokens,
	}
	if out.Usage.Cached == 0 {
		out.Usage.Cached = whole(number(u.JSON.ExtraFields, "prompt_cache_hit_tokens"))
	}
	if out.Usage.CacheWrite == 0 {
		out.Usage.CacheWrite = whole(number(details, "cache_write_tokens"))
	}
	out.Cost = cost(u.JSON.ExtraFields)
}

// chatExtra are the members that are not the protocol's and have no field of their own.
func chatExtra(fields ...map[string]respjson.Field) *value.Object {
	out := value.NewObject(0)
	for _, f := range fields {
		for _, key := range slices.Sorted(maps.Keys(f)) {
			v, err := value.Decode([]byte(f[key].Raw()))
			if err != nil || value.IsNull(v) || key == "token_ids" || key == "prompt_token_ids" {
				continue
			}
			out.Set(key, v)
		}
	}
	if out.Len() == 0 {
		return nil
	}
	return out
}
