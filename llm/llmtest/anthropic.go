package llmtest

import (
	"encoding/json"
	"net/http"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

type anthropic struct{}

func (anthropic) api() llm.API { return llm.Anthropic }

type anthropicBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	UseID   string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
	Failed  bool            `json:"is_error"`
}

func (anthropic) parse(req *Request) error {
	var body struct {
		Model    string          `json:"model"`
		Stream   bool            `json:"stream"`
		System   json.RawMessage `json:"system"`
		Messages []struct {
			Role    llm.Role        `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := readBody(req, &body); err != nil {
		return err
	}
	req.Model, req.Stream = body.Model, body.Stream
	if len(body.System) > 0 {
		req.Messages = append(req.Messages, message(llm.System, contentText(body.System)))
	}
	for _, t := range body.Tools {
		req.Tools = append(req.Tools, t.Name)
	}
	for _, m := range body.Messages {
		var blocks []anthropicBlock
		if json.Unmarshal(m.Content, &blocks) != nil {
			req.Messages = append(req.Messages, message(m.Role, contentText(m.Content)))
			continue
		}
		req.Messages = append(req.Messages, blockMessages(m.Role, blocks)...)
	}
	return nil
}

// blockMessages makes a message of each result, and one of the rest.
func blockMessages(role llm.Role, blocks []anthropicBlock) []llm.Message {
	var out []llm.Message
	rest := llm.Message{Role: role}
	for _, b := range blocks {
		switch b.Type {
		case "tool_result":
			msg := message(llm.Tool, contentText(b.Content))
			msg.CallID, msg.Failed = b.UseID, b.Failed
			out = append(out, msg)
		case "tool_use":
			rest.Calls = append(rest.Calls, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		case "text":
			rest.Parts = append(rest.Parts, llm.Part{Text: b.Text})
		}
	}
	if len(rest.Parts) > 0 || len(rest.Calls) > 0 || len(out) == 0 {
		out = append(out, rest)
	}
	return out
}

func (anthropic) fail(w http.ResponseWriter, f *Fault) {
	if f.special(w, `{"id":"x","type":"message","role":"assistant"}`) {
		return
	}
	o := f.of(anthropicWords)
	sendStatus(w, o.status, object{"type": "error", "error": object{"type": o.class, "message": o.message}})
}

func (anthropic) blocks(a *full) []object {
	out := []object{}
	if a.Reasoning != "" {
		out = append(out, object{"type": "thinking", "thinking": a.Reasoning, "signature": a.Signature})
	}
	if a.Text != "" {
		out = append(out, object{"type": "text", "text": a.Text})
	}
	for _, c := range a.calls {
		out = append(out, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": argumentsOf(c)})
	}
	return out
}

// argumentsOf are the arguments of a call where the protocol has an object.
func argumentsOf(c llm.ToolCall) any {
	if json.Valid([]byte(c.Arguments)) {
		return json.RawMessage(c.Arguments)
	}
	return object{"invalid": c.Arguments}
}

func (anthropic) reason(f llm.Finish) string {
	switch f {
	case llm.Length:
		return "max_tokens"
	case llm.CallsMade:
		return "tool_use"
	case llm.Filtered:
		return "refusal"
	}
	return "end_turn"
}

func (anthropic) usage(a *full) object {
	return object{
		"input_tokens":                a.usage.Prompt - a.usage.Cached - a.usage.CacheWrite,
		"cache_read_input_tokens":     a.usage.Cached,
		"cache_creation_input_tokens": a.usage.CacheWrite,
		"output_tokens":               a.usage.Completion,
	}
}

func (d anthropic) whole(req *Request, a *full) any {
	return object{
		"id": a.id, "type": "message", "role": "assistant", "model": req.Model, "content": d.blocks(a),
		"stop_reason": d.reason(a.finish), "stop_sequence": nil, "usage": d.usage(a),
	}
}

func (d anthropic) events(req *Request, a *full) []event {
	var out []event
	add := func(name string, data object) {
		data["type"] = name
		out = append(out, event{name, data})
	}
	usage := d.usage(a)
	usage["output_tokens"] = 1
	add("message_start", object{"message": object{
		"id": a.id, "type": "message", "role": "assistant", "model": req.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}})
	add("ping", object{})
	for i, b := range d.blocks(a) {
		start, deltas := deltasOf(b)
		add("content_block_start", object{"index": i, "content_block": start})
		for _, delta := range deltas {
			add("content_block_delta", object{"index": i, "delta": delta})
		}
		add("content_block_stop", object{"index": i})
	}
	add("message_delta", object{
		"delta": object{"stop_reason": d.reason(a.finish), "stop_sequence": nil}, "usage": d.usage(a),
	})
	add("message_stop", object{})
	return out
}

// deltasOf is a block as a stream has it: how it starts, and what is added.
func deltasOf(b object) (start object, deltas []object) {
	switch b["type"] {
	case "text":
		for _, piece := range pieces(b["text"].(string)) {
			deltas = append(deltas, object{"type": "text_delta", "text": piece})
		}
		return object{"type": "text", "text": ""}, deltas
	case "thinking":
		return object{"type": "thinking", "thinking": "", "signature": ""}, []object{
			{"type": "thinking_delta", "thinking": b["thinking"]},
			{"type": "signature_delta", "signature": b["signature"]},
		}
	}
	input, err := wire.JSON(b["input"])
	if err != nil {
		input = []byte("{}")
	}
	return object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}},
		[]object{{"type": "input_json_delta", "partial_json": string(input)}}
}
