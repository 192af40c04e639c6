package gemini

import (
	"encoding/json"
	"strings"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

type part struct {
	Text      string          `json:"text,omitempty"`
	Thought   bool            `json:"thought,omitempty"`
	Signature string          `json:"thoughtSignature,omitempty"`
	Inline    *blob           `json:"inlineData,omitempty"`
	File      *file           `json:"fileData,omitempty"`
	Call      *functionCall   `json:"functionCall,omitempty"`
	Response  *functionResult `json:"functionResponse,omitempty"`
}

type blob struct {
	MediaType string `json:"mimeType"`
	Data      string `json:"data"`
}

type file struct {
	MediaType string `json:"mimeType,omitempty"`
	URI       string `json:"fileUri"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type functionResult struct {
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
}

func (m *model) body(req *llm.Request, without map[string]bool) *wire.Body {
	b := &wire.Body{}
	system, contents := contentsOf(req)
	if len(system) > 0 {
		b.Set("systemInstruction", content{Parts: system})
	}
	b.Set("contents", contents)
	if len(req.Tools) > 0 {
		b.Set("tools", []any{map[string]any{"functionDeclarations": declarations(req.Tools)}})
	}
	if config := m.config(req, without); len(config) > 0 {
		b.Set("generationConfig", config)
	}
	if req.SessionID != "" && !without["session_id"] {
		b.Set("session_id", req.SessionID)
	}
	return b
}

func (m *model) config(req *llm.Request, without map[string]bool) map[string]any {
	config := map[string]any{}
	if req.MaxOutput > 0 {
		config["maxOutputTokens"] = req.MaxOutput
	}
	if req.Temperature != nil && !without["temperature"] {
		config["temperature"] = *req.Temperature
	}
	if req.Tokens && !without["logprobs"] {
		config["responseLogprobs"] = true
	}
	if thinking := m.thinking(req, without); thinking != nil {
		config["thinkingConfig"] = thinking
	}
	return config
}

// thinking bounds the thinking by a budget, which models of the second generation know,
// or by a level, which those that came later do.
func (m *model) thinking(req *llm.Request, without map[string]bool) map[string]any {
	if req.ThinkingTokens <= 0 && req.Effort != "none" && wire.Budget(req.Effort) == 0 {
		return nil
	}
	budgets := strings.Contains(m.Model, "gemini-2") || strings.Contains(m.Model, "gemini-1") || without["thinkingLevel"]
	if !budgets && req.ThinkingTokens <= 0 && req.Effort != "none" {
		return map[string]any{"includeThoughts": true, "thinkingLevel": levelOf(req.Effort)}
	}
	if without["thinkingConfig"] {
		return nil
	}
	if req.ThinkingTokens > 0 {
		return map[string]any{"includeThoughts": true, "thinkingBudget": req.ThinkingTokens}
	}
	budget := wire.Budget(req.Effort)
	if budget == 0 {
		return map[string]any{"thinkingBudget": 0}
	}
	return map[string]any{"includeThoughts": true, "thinkingBudget": budget}
}

func levelOf(effort string) string {
	switch effort {
	case "minimal", "low", "medium":
		return strings.ToUpper(effort)
	}
	return "HIGH"
}

// contentsOf is the conversation. What system messages say before anything else stands
// apart; those that come later are the user's. Results of calls that were made together
// are one content, as the protocol demands; their pictures come after them.
func contentsOf(req *llm.Request) (system []part, out []json.RawMessage) {
	out = []json.RawMessage{}
	add := func(role string, parts []part) {
		if len(parts) == 0 {
			return
		}
		if data, err := wire.JSON(content{Role: role, Parts: parts}); err == nil {
			out = append(out, data)
		}
	}
	names := map[string]string{}
	var results, pictures []part
	flush := func() {
		add("user", results)
		add("user", pictures)
		results, pictures = nil, nil
	}
	for i := range req.Messages {
		msg := &req.Messages[i]
		if msg.Role == llm.Tool {
			results = append(results, part{Response: resultOf(msg, names[msg.CallID])})
			pictures = append(pictures, partsOf(wire.Images(msg))...)
			continue
		}
		flush()
		switch {
		case msg.Role == llm.Assistant:
			for _, c := range msg.Calls {
				names[c.ID] = c.Name
			}
			if native := wire.Native(msg, llm.Gemini); native != nil {
				out = append(out, native)
				continue
			}
			add("model", modelParts(msg, req.SendReasoning))
		case msg.Role == llm.System && len(out) == 0:
			system = append(system, partsOf(msg.Parts)...)
		default:
			add("user", partsOf(msg.Parts))
		}
	}
	flush()
	return system, out
}

func modelParts(msg *llm.Message, reasoning bool) []part {
	var out []part
	if reasoning && msg.Reasoning != "" {
		out = append(out, part{Text: msg.Reasoning, Thought: true})
	}
	out = append(out, partsOf(msg.Parts)...)
	for _, c := range msg.Calls {
		out = append(out, part{Call: &functionCall{Name: c.Name, Args: wire.Arguments(c)}})
	}
	return out
}

func resultOf(msg *llm.Message, name string) *functionResult {
	key := "output"
	if msg.Failed {
		key = "error"
	}
	return &functionResult{Name: name, Response: map[string]string{key: msg.Text()}}
}

func partsOf(parts []llm.Part) []part {
	var out []part
	for _, p := range parts {
		if p.Image == nil {
			if p.Text != "" {
				out = append(out, part{Text: p.Text})
			}
			continue
		}
		if picture := wire.PictureOf(p.Image); picture.Base64 != "" {
			out = append(out, part{Inline: &blob{picture.MediaType, picture.Base64}})
		} else {
			out = append(out, part{File: &file{picture.MediaType, picture.URL}})
		}
	}
	return out
}

func declarations(tools []llm.ToolSpec) []any {
	out := make([]any, len(tools))
	for i, t := range tools {
		d := map[string]any{"name": t.Name}
		if t.Description != "" {
			d["description"] = t.Description
		}
		// The protocol's own schemas are a dialect; this member takes JSON schema as it is.
		if t.Parameters != nil {
			d["parametersJsonSchema"] = wire.Schema(t.Parameters)
		}
		out[i] = d
	}
	return out
}
