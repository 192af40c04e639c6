package anthropic

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// defaultOutput bounds answers of models whose limit is not known; the protocol demands a
// bound.
const defaultOutput = 4096

func (m *model) body(req *llm.Request, without map[string]bool) *wire.Body {
	b := &wire.Body{}
	b.Set("model", m.Model)
	system, messages := messagesOf(req)
	if len(system) > 0 {
		b.Set("system", system)
	}
	b.Set("messages", messages)
	if len(req.Tools) > 0 {
		b.Set("tools", toolsOf(req.Tools))
	}
	thinking := m.think(b, req, without)
	// Models that think take no temperature but their own.
	if req.Temperature != nil && !thinking && !without["temperature"] {
		b.Set("temperature", *req.Temperature)
	}
	if req.SessionID != "" && !without["session_id"] {
		b.Set("session_id", req.SessionID)
	}
	return b
}

// think sets how much the model may write and think, and tells whether it thinks. Budgets
// come first. Models that refuse them are told the effort, and decide for themselves.
func (m *model) think(b *wire.Body, req *llm.Request, without map[string]bool) bool {
	limit := m.Endpoint.Info.OutputLimit
	output := req.MaxOutput
	if output <= 0 {
		output = limit
	}
	if output <= 0 {
		output = defaultOutput
	}
	budget := wire.Budget(req.Effort)
	if req.ThinkingTokens > 0 {
		budget = max(1024, req.ThinkingTokens)
	}
	thinks := budget > 0
	switch {
	case !thinks:
	case !without["thinking"]:
		// The budget is part of what may be written.
		if output <= budget {
			output += budget
		}
		if limit > 0 && output > limit {
			output, budget = limit, min(budget, limit/2)
		}
		b.Set("thinking", map[string]any{"type": "enabled", "budget_tokens": budget})
	case !without["output_config"]:
		b.Set("thinking", map[string]any{"type": "adaptive"})
		if effort := effortOf(req.Effort); effort != "" {
			b.Set("output_config", map[string]any{"effort": effort})
		}
	default:
		thinks = false
	}
	b.Set("max_tokens", output)
	return thinks
}

// effortOf is the protocol's word for an effort.
func effortOf(effort string) string {
	switch effort {
	case "minimal":
		return "low"
	case "low", "medium", "high", "xhigh", "max":
		return effort
	}
	return ""
}

type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text,omitempty"`
	Source  *source         `json:"source,omitempty"`
	ID      string          `json:"id,omitempty"`
	Name    string          `json:"name,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	UseID   string          `json:"tool_use_id,omitempty"`
	Content []block         `json:"content,omitempty"`
	Failed  bool            `json:"is_error,omitempty"`
	Cache   *cacheControl   `json:"cache_control,omitempty"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

type cacheControl struct {
	Type string `json:"type"`
}

type message struct {
	Role    string            `json:"role"`
	Content []json.RawMessage `json:"content"`
}

// maxMarks is how many marks the protocol allows in one request.
const maxMarks = 4

// messagesOf is the conversation. What system messages say before anything else stands
// apart; those that come later are the user's, as the protocol has no other place. A
// message is put into the one before it if both are of one side.
func messagesOf(req *llm.Request) (system []block, out []message) {
	marked := marks(req.Messages)
	for i := range req.Messages {
		msg := &req.Messages[i]
		if msg.Role == llm.System && len(out) == 0 {
			blocks := partBlocks(msg.Parts)
			if marked[i] && len(blocks) > 0 {
				blocks[len(blocks)-1].Cache = &cacheControl{"ephemeral"}
			}
			system = append(system, blocks...)
			continue
		}
		role := "user"
		if msg.Role == llm.Assistant {
			role = "assistant"
		}
		blocks := blocksOf(msg, marked[i])
		if len(blocks) == 0 {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].Role == role {
			out[last].Content = append(out[last].Content, blocks...)
			continue
		}
		out = append(out, message{role, blocks})
	}
	if out == nil {
		out = []message{}
	}
	return system, out
}

// marks tells which messages are marked: the last ones of those that ask for it.
func marks(messages []llm.Message) []bool {
	out := make([]bool, len(messages))
	left := maxMarks
	for i, msg := range slices.Backward(messages) {
		if msg.Cache && left > 0 {
			out[i] = true
			left--
		}
	}
	return out
}

// blocksOf are the blocks of a message. Reasoning is sent only in its native form: without
// its signature it is not taken.
func blocksOf(msg *llm.Message, marked bool) []json.RawMessage {
	if native := nativeBlocks(msg); native != nil {
		if marked {
			markLast(native)
		}
		return native
	}
	blocks := partBlocks(msg.Parts)
	if msg.Role == llm.Tool {
		blocks = []block{{Type: "tool_result", UseID: idOf(msg.CallID), Content: blocks, Failed: msg.Failed}}
	}
	if msg.Role == llm.User && len(blocks) == 0 {
		blocks = []block{{Type: "text", Text: "(empty)"}}
	}
	for _, c := range msg.Calls {
		blocks = append(blocks, block{Type: "tool_use", ID: idOf(c.ID), Name: c.Name, Input: wire.Arguments(c)})
	}
	if marked && len(blocks) > 0 {
		blocks[len(blocks)-1].Cache = &cacheControl{"ephemeral"}
	}
	var out []json.RawMessage
	for _, b := range blocks {
		if data, err := wire.JSON(b); err == nil {
			out = append(out, data)
		}
	}
	return out
}

// nativeBlocks are the blocks of a message as the provider gave them.
func nativeBlocks(msg *llm.Message) []json.RawMessage {
	native := wire.Native(msg, llm.Anthropic)
	if native == nil {
		return nil
	}
	var blocks []json.RawMessage
	if json.Unmarshal(native, &blocks) != nil {
		return nil
	}
	return blocks
}

// markLast marks the last block that may be marked, which thinking may not.
func markLast(blocks []json.RawMessage) {
	for i, raw := range slices.Backward(blocks) {
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil || strings.Contains(string(members["type"]), "thinking") {
			continue
		}
		members = maps.Clone(members)
		members["cache_control"] = json.RawMessage(`{"type":"ephemeral"}`)
		if data, err := wire.JSON(members); err == nil {
			blocks[i] = data
		}
		return
	}
}

// partBlocks are the parts of a message. A text of spaces alone is refused, and left away.
func partBlocks(parts []llm.Part) []block {
	var out []block
	for _, p := range parts {
		switch {
		case p.Image != nil:
			out = append(out, block{Type: "image", Source: sourceOf(p.Image)})
		case strings.TrimSpace(p.Text) != "":
			out = append(out, block{Type: "text", Text: p.Text})
		}
	}
	return out
}

func sourceOf(img *llm.Image) *source {
	p := wire.PictureOf(img)
	if p.Base64 != "" {
		return &source{Type: "base64", MediaType: p.MediaType, Data: p.Base64}
	}
	return &source{Type: "url", URL: p.URL}
}

// idOf is an id in the characters that the protocol takes.
func idOf(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
}

func toolsOf(tools []llm.ToolSpec) []any {
	out := make([]any, len(tools))
	for i, t := range tools {
		tool := map[string]any{"name": t.Name, "input_schema": wire.Schema(t.Parameters)}
		if t.Description != "" {
			tool["description"] = t.Description
		}
		out[i] = tool
	}
	return out
}
