package llmtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/proctor-run/proctor/llm"
)

type object = map[string]any

// contentText is the text of a content that is a text or a list of parts.
func contentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		s += p.Text
		if len(p.Content) > 0 {
			s += contentText(p.Content)
		}
	}
	return s
}

// message is a message of a text, which may be empty.
func message(role llm.Role, text string) llm.Message {
	if role == "developer" {
		role = llm.System
	}
	return llm.TextMessage(role, text)
}

func readBody(req *Request, into any) error {
	if err := json.Unmarshal(req.Body, into); err != nil {
		return fmt.Errorf("the body is not the protocol's: %w", err)
	}
	return nil
}

type chat struct{}

func (chat) api() llm.API { return llm.Chat }

func (chat) parse(req *Request) error {
	var body struct {
		Model   string `json:"model"`
		Stream  bool   `json:"stream"`
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct {
			Role    llm.Role        `json:"role"`
			Content json.RawMessage `json:"content"`
			CallID  string          `json:"tool_call_id"`
			Calls   []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := readBody(req, &body); err != nil {
		return err
	}
	req.Model, req.Stream, req.includeUsage = body.Model, body.Stream, body.Options.Usage
	for _, m := range body.Messages {
		msg := message(m.Role, contentText(m.Content))
		msg.CallID = m.CallID
		for _, c := range m.Calls {
			msg.Calls = append(msg.Calls, llm.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		req.Messages = append(req.Messages, msg)
	}
	for _, t := range body.Tools {
		req.Tools = append(req.Tools, t.Function.Name)
	}
	return nil
}

func (chat) fail(w http.ResponseWriter, f *Fault) {
	if f.special(w, `{"id":"x","object":"chat.completion","choices":[]}`) {
		return
	}
	failOpenAI(w, f)
}

func failOpenAI(w http.ResponseWriter, f *Fault) {
	o := f.of(openaiWords)
	var code any
	if o.code != "" {
		code = o.code
	}
	sendStatus(w, o.status, object{"error": object{"message": o.message, "type": o.class, "param": nil, "code": code}})
}

func (chat) finish(f llm.Finish) string { return string(f) }

func (c chat) usage(a *full) object {
	u := object{
		"prompt_tokens": a.usage.Prompt, "completion_tokens": a.usage.Completion,
		"total_tokens":          a.usage.Prompt + a.usage.Completion,
		"prompt_tokens_details": object{"cached_tokens": a.usage.Cached, "cache_write_tokens": a.usage.CacheWrite},
	}
	if a.Cost != nil {
		u["cost"] = *a.Cost
	}
	return u
}

func (c chat) whole(req *Request, a *full) any {
	msg := object{"role": "assistant", "content": nil}
	if a.Text != "" || len(a.calls) == 0 {
		msg["content"] = a.Text
	}
	if a.Reasoning != "" {
		msg["reasoning_content"] = a.Reasoning
	}
	if len(a.calls) > 0 {
		msg["tool_calls"] = c.calls(a, false)
	}
	choice := object{"index": 0, "message": msg, "finish_reason": c.finish(a.finish)}
	if a.LogProbs != nil {
		content := []any{}
		for _, p := range a.LogProbs {
			content = append(content, object{"token": "", "logprob": p, "bytes": nil, "top_logprobs": []any{}})
		}
		choice["logprobs"] = object{"content": content}
	}
	if a.CompletionTokenIDs != nil {
		choice["token_ids"] = a.CompletionTokenIDs
	}
	out := object{"id": a.id, "object": "chat.completion", "created": 0, "model": req.Model, "choices": []any{choice}, "usage": c.usage(a)}
	if a.PromptTokenIDs != nil {
		out["prompt_token_ids"] = a.PromptTokenIDs
	}
	return out
}

func (chat) calls(a *full, indexed bool) []any {
	var out []any
	for i, call := range a.calls {
		o := object{"id": call.ID, "type": "function", "function": object{"name": call.Name, "arguments": call.Arguments}}
		if indexed {
			o["index"] = i
		}
		out = append(out, o)
	}
	return out
}

func (c chat) events(req *Request, a *full) []event {
	chunk := func(delta object, finish any) event {
		return event{data: object{
			"id": a.id, "object": "chat.completion.chunk", "created": 0, "model": req.Model,
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}},
		}}
	}
	out := []event{chunk(object{"role": "assistant", "content": ""}, nil)}
	if a.Reasoning != "" {
		out = append(out, chunk(object{"reasoning_content": a.Reasoning}, nil))
	}
	for _, piece := range pieces(a.Text) {
		out = append(out, chunk(object{"content": piece}, nil))
	}
	if len(a.calls) > 0 {
		out = append(out, chunk(object{"tool_calls": c.calls(a, true)}, nil))
	}
	out = append(out, chunk(object{}, c.finish(a.finish)))
	if req.includeUsage {
		out = append(out, event{data: object{
			"id": a.id, "object": "chat.completion.chunk", "created": 0, "model": req.Model,
			"choices": []any{}, "usage": c.usage(a),
		}})
	}
	return append(out, event{data: "[DONE]"})
}

// pieces cuts a text in two, between characters, so that a stream has more than one.
func pieces(text string) []string {
	r := []rune(text)
	switch {
	case len(r) == 0:
		return nil
	case len(r) == 1:
		return []string{text}
	}
	return []string{string(r[:len(r)/2]), string(r[len(r)/2:])}
}

type responses struct{}

func (responses) api() llm.API { return llm.Responses }

func (responses) parse(req *Request) error {
	var body struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Previous     string          `json:"previous_response_id"`
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		Tools        []struct {
			Name  string `json:"name"`
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"` // of a namespace
		} `json:"tools"`
	}
	if err := readBody(req, &body); err != nil {
		return err
	}
	req.Model, req.Stream, req.previous = body.Model, body.Stream, body.Previous
	for _, t := range body.Tools {
		if t.Tools == nil {
			req.Tools = append(req.Tools, t.Name)
		}
		for _, inside := range t.Tools {
			req.Tools = append(req.Tools, t.Name+namespaceMark+inside.Name)
		}
	}
	if body.Instructions != "" {
		req.Messages = append(req.Messages, message(llm.System, body.Instructions))
	}
	var text string
	if json.Unmarshal(body.Input, &text) == nil {
		req.Messages = append(req.Messages, message(llm.User, text))
		return nil
	}
	return parseItems(req, body.Input)
}

// parseItems reads the items of an input. Those of one answer become one message.
func parseItems(req *Request, input json.RawMessage) error {
	var items []struct {
		Type      string          `json:"type"`
		Role      llm.Role        `json:"role"`
		Content   json.RawMessage `json:"content"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Arguments string          `json:"arguments"` // a function's, and Input another tool's
		Input     string          `json:"input"`
		Output    json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal(input, &items); err != nil {
		return fmt.Errorf("the input is not a list of items: %w", err)
	}
	for _, item := range items {
		switch item.Type {
		case "reasoning":
		case "function_call", "custom_tool_call":
			last := len(req.Messages) - 1
			if last < 0 || req.Messages[last].Role != llm.Assistant {
				req.Messages = append(req.Messages, message(llm.Assistant, ""))
				last++
			}
			req.Messages[last].Calls = append(req.Messages[last].Calls,
				llm.ToolCall{ID: item.CallID, Name: item.Name, Arguments: item.Arguments + item.Input})
		case "function_call_output", "custom_tool_call_output":
			msg := message(llm.Tool, contentText(item.Output))
			msg.CallID = item.CallID
			req.Messages = append(req.Messages, msg)
		default:
			req.Messages = append(req.Messages, message(item.Role, contentText(item.Content)))
		}
	}
	return nil
}

func (responses) fail(w http.ResponseWriter, f *Fault) {
	if !f.special(w, `{"id":"x","object":"response","status":"completed"}`) {
		failOpenAI(w, f)
	}
}

func (responses) items(a *full) []object {
	var out []object
	if a.Reasoning != "" {
		item := object{
			"id": "rs_" + a.id, "type": "reasoning",
			"summary": []any{object{"type": "summary_text", "text": a.Reasoning}},
		}
		if a.Signature != "" {
			item["encrypted_content"] = a.Signature
		}
		out = append(out, item)
	}
	if a.Text != "" || len(a.calls) == 0 {
		part := object{"type": "output_text", "text": a.Text, "annotations": []any{}}
		if a.LogProbs != nil {
			list := []any{}
			for _, p := range a.LogProbs {
				list = append(list, object{"token": "", "logprob": p, "bytes": []any{}, "top_logprobs": []any{}})
			}
			part["logprobs"] = list
		}
		out = append(out, object{
			"id": "msg_" + a.id, "type": "message", "role": "assistant", "status": "completed", "content": []any{part},
		})
	}
	for _, c := range a.calls {
		item := object{
			"id": "fc_" + c.ID, "type": "function_call", "status": "completed",
			"call_id": c.ID, "name": c.Name, "arguments": c.Arguments,
		}
		if namespace, name, ok := strings.Cut(c.Name, namespaceMark); ok {
			item["namespace"], item["name"] = namespace, name
		}
		out = append(out, item)
	}
	return out
}

// namespaceMark stands between a namespace and the name of a tool in it. Names have none.
const namespaceMark = ":"

func (r responses) whole(req *Request, a *full) any {
	usage := object{
		"input_tokens": a.usage.Prompt, "output_tokens": a.usage.Completion,
		"total_tokens":          a.usage.Prompt + a.usage.Completion,
		"input_tokens_details":  object{"cached_tokens": a.usage.Cached, "cache_write_tokens": a.usage.CacheWrite},
		"output_tokens_details": object{"reasoning_tokens": 0},
	}
	if a.Cost != nil {
		usage["cost"] = *a.Cost
	}
	out := object{
		"id": a.id, "object": "response", "created_at": 0, "model": req.Model, "status": "completed",
		"error": nil, "incomplete_details": nil, "output": r.items(a), "usage": usage,
		"parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{},
	}
	switch a.finish {
	case llm.Length:
		out["status"], out["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	case llm.Filtered:
		out["status"], out["incomplete_details"] = "incomplete", object{"reason": "content_filter"}
	}
	return out
}

func (r responses) events(req *Request, a *full) []event {
	var out []event
	add := func(name string, data object) {
		data["type"], data["sequence_number"] = name, len(out)
		out = append(out, event{name, data})
	}
	begun := object{"id": a.id, "object": "response", "created_at": 0, "model": req.Model, "status": "in_progress", "output": []any{}}
	add("response.created", object{"response": begun})
	for i, item := range r.items(a) {
		add("response.output_item.added", object{"output_index": i, "item": begunItem(item)})
		switch item["type"] {
		case "reasoning":
			add("response.reasoning_summary_text.delta", object{"item_id": item["id"], "output_index": i, "summary_index": 0, "delta": a.Reasoning})
			add("response.reasoning_summary_text.done", object{"item_id": item["id"], "output_index": i, "summary_index": 0, "text": a.Reasoning})
		case "message":
			where := func(more object) object {
				more["item_id"], more["output_index"], more["content_index"] = item["id"], i, 0
				return more
			}
			add("response.content_part.added", where(object{"part": object{"type": "output_text", "text": "", "annotations": []any{}}}))
			for _, piece := range pieces(a.Text) {
				add("response.output_text.delta", where(object{"delta": piece}))
			}
			add("response.output_text.done", where(object{"text": a.Text}))
			add("response.content_part.done", where(object{"part": object{"type": "output_text", "text": a.Text, "annotations": []any{}}}))
		case "function_call":
			add("response.function_call_arguments.delta", object{"item_id": item["id"], "output_index": i, "delta": item["arguments"]})
			add("response.function_call_arguments.done", object{"item_id": item["id"], "output_index": i, "arguments": item["arguments"]})
		}
		add("response.output_item.done", object{"output_index": i, "item": item})
	}
	end := "response.completed"
	if a.finish == llm.Length || a.finish == llm.Filtered {
		end = "response.incomplete"
	}
	add(end, object{"response": r.whole(req, a)})
	return out
}

// begunItem is an item of which nothing has been said yet.
func begunItem(item object) object {
	out := maps.Clone(item)
	switch item["type"] {
	case "reasoning":
		out["summary"] = []any{}
		delete(out, "encrypted_content")
	case "message":
		out["status"], out["content"] = "in_progress", []any{}
	case "function_call":
		out["status"], out["arguments"] = "in_progress", ""
	}
	return out
}
