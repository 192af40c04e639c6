package openai

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
	"github.com/proctor-run/proctor/value"
)

type chatModel struct{ *wire.Conn }

// Complete asks for the next message.
func (m *chatModel) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	header := http.Header{}
	wire.Authorize(header, &m.Endpoint, llm.Chat)
	x, err := m.Ask(ctx, req, wire.Call{
		Build: func(without map[string]bool) *wire.Body { return m.body(req, without) },
		Send: func(ctx context.Context, body []byte) error {
			return m.Post(ctx, wire.Address(llm.Chat, m.Base, "/chat/completions"), header.Clone(), body)
		},
	})
	if err != nil {
		return nil, err
	}
	var answer wire.Members
	if err := x.Decode(&answer); err != nil {
		return nil, m.Unusable(x, err.Error())
	}
	choices := answer.List("choices")
	if len(choices) == 0 {
		return nil, m.Unusable(x, "the answer has no choice")
	}
	if wire.Object(choices[0]["error"]) != nil {
		x.Body = slices.Concat([]byte(`{"error":`), choices[0]["error"], []byte("}"))
		return nil, m.Unusable(x, "the answer is an error")
	}
	return chatResponse(req, answer, choices[0]), nil
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
		if native := wire.Native(msg, llm.Chat); native != nil {
			out = append(out, markNative(native, marks[i] > 0))
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

// markNative marks the last part of a message that its provider gave, if it has a text.
func markNative(native json.RawMessage, marked bool) json.RawMessage {
	msg := wire.Object(native)
	parts := msg.List("content")
	if said := msg.Text("content"); said != "" {
		text, err := wire.JSON(said)
		if err != nil {
			return native
		}
		parts = []wire.Members{{"type": json.RawMessage(`"text"`), "text": text}}
	}
	if !marked || len(parts) == 0 || parts[len(parts)-1] == nil {
		return native
	}
	parts[len(parts)-1]["cache_control"] = json.RawMessage(`{"type":"ephemeral"}`)
	content, err := wire.JSON(parts)
	if err != nil {
		return native
	}
	msg["content"] = content
	data, err := wire.JSON(msg)
	if err != nil {
		return native
	}
	return data
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

func chatResponse(req *llm.Request, answer, choice wire.Members) *llm.Response {
	msg := wire.Object(choice["message"])
	out := &llm.Response{
		ID: answer.Text("id"), Model: answer.Text("model"), Finish: wire.ChatFinish(choice.Text("finish_reason")),
		Message: llm.Message{Role: llm.Assistant},
	}
	said, thought := chatContent(msg)
	if said == "" {
		said = msg.Text("refusal")
	}
	if said != "" {
		out.Message.Parts = []llm.Part{{Text: said}}
	}
	for _, key := range []string{"reasoning_content", "reasoning"} {
		if thought == "" {
			thought = msg.Text(key)
		}
	}
	out.Message.Reasoning = thought
	ids := wire.NewIDs(req.Messages)
	for _, c := range msg.List("tool_calls") {
		function := wire.Object(c["function"])
		out.Message.Calls = append(out.Message.Calls, llm.ToolCall{
			ID: ids.For(c.Text("id")), Name: function.Text("name"), Arguments: argumentsOf(function["arguments"]),
		})
	}
	if len(out.Message.Calls) > 0 && out.Finish == llm.Stopped {
		out.Finish = llm.CallsMade
	}
	out.Message.Native = chatNative(msg)
	out.Usage, out.Cost = wire.ChatUsage(answer["usage"])
	for _, t := range wire.Object(choice["logprobs"]).List("content") {
		var p float64
		if json.Unmarshal(t["logprob"], &p) == nil {
			out.LogProbs = append(out.LogProbs, p)
		}
	}
	out.CompletionTokenIDs = choice.Numbers("token_ids")
	out.PromptTokenIDs = answer.Numbers("prompt_token_ids")
	out.Extra = chatExtra(answer, choice)
	return out
}

// argumentsOf are the arguments of a call: text, of some servers the object itself.
func argumentsOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// chatContent reads the content: a text or, of some servers, a list of parts, of which
// those of the type "thinking" are reasoning.
func chatContent(msg wire.Members) (said, thought string) {
	said = msg.Text("content")
	for _, part := range msg.List("content") {
		said += part.Text("text")
		for _, t := range part.List("thinking") {
			thought += t.Text("text")
		}
	}
	return said, thought
}

// chatNative keeps a message that has something only its provider can read: the details
// of reasoning of gateways, and what they add to calls.
func chatNative(msg wire.Members) *llm.Native {
	signed := msg.List("reasoning_details") != nil
	for _, c := range msg.List("tool_calls") {
		signed = signed || c["extra_content"] != nil
		if c.Text("id") == "" {
			return nil // it could not be answered
		}
	}
	if !signed {
		return nil
	}
	kept := wire.Members{"role": json.RawMessage(`"assistant"`), "content": json.RawMessage("null")}
	for _, key := range []string{"content", "tool_calls", "reasoning_details"} {
		if msg[key] != nil {
			kept[key] = msg[key]
		}
	}
	data, err := wire.JSON(kept)
	if err != nil {
		return nil
	}
	return &llm.Native{API: llm.Chat, Content: data}
}

// chatExtra are the members that are not the protocol's and have no field of their own.
func chatExtra(answer, choice wire.Members) *value.Object {
	out := value.NewObject(0)
	for _, m := range []wire.Members{answer, choice} {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if v := m.Value(key); v != nil && !known(key) {
				out.Set(key, v)
			}
		}
	}
	if out.Len() == 0 {
		return nil
	}
	return out
}

// known: the member is one of an answer or a choice as the protocol has them, or is read.
func known(key string) bool {
	switch key {
	case "id", "object", "created", "model", "choices", "usage", "service_tier", "system_fingerprint", "metadata", "moderation",
		"index", "message", "finish_reason", "logprobs", "token_ids", "prompt_token_ids":
		return true
	}
	return false
}
