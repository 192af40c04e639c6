package openai

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

type responsesModel struct {
	*wire.Conn
	service responses.ResponseService
}

// Complete asks for the next message.
func (m *responsesModel) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	var answer *responses.Response
	x, err := m.Ask(ctx, req, wire.Call{
		Build: func(without map[string]bool) *wire.Body { return m.body(req, without) },
		Send: func(ctx context.Context, body []byte) (err error) {
			answer, err = m.service.New(ctx, responses.ResponseNewParams{}, option.WithRequestBody("application/json", body))
			return err //nolint:wrapcheck // the connection words it
		},
	})
	if err != nil {
		return nil, err
	}
	switch {
	case answer == nil:
		return nil, m.Unusable(x, "the answer is empty")
	case answer.Status == responses.ResponseStatusFailed || answer.JSON.Error.Valid():
		return nil, m.Unusable(x, "the response failed")
	case !answer.JSON.Output.Valid():
		return nil, m.Unusable(x, "the answer has no output")
	case answer.Status == responses.ResponseStatusCancelled:
		return nil, m.Unusable(x, "the response was cancelled")
	}
	return responseOf(req, answer), nil
}

func (m *responsesModel) body(req *llm.Request, without map[string]bool) *wire.Body {
	b := &wire.Body{}
	b.Set("model", m.Model)
	b.Set("input", inputOf(req))
	if len(req.Tools) > 0 {
		b.Set("tools", responseTools(req.Tools))
	}
	limit := req.MaxOutput
	if limit <= 0 {
		limit = m.Endpoint.Info.OutputLimit
	}
	set := func(key string, wanted bool, v any) {
		if wanted && !without[key] {
			b.Set(key, v)
		}
	}
	set("max_output_tokens", limit > 0, limit)
	set("temperature", req.Temperature != nil, req.Temperature)
	set("previous_response_id", req.PreviousID != "", req.PreviousID)
	set("session_id", req.SessionID != "", req.SessionID)
	var include []string
	if hasEffort(req) && !without["reasoning_effort"] {
		b.Set("reasoning", map[string]any{"effort": req.Effort})
		if req.Effort != "none" {
			include = append(include, "reasoning.encrypted_content")
		}
	}
	if req.Tokens && !without["logprobs"] {
		include = append(include, "message.output_text.logprobs")
	}
	set("include", len(include) > 0, include)
	return b
}

type inputItem struct {
	Type      string  `json:"type"`
	Role      string  `json:"role,omitempty"`
	Content   any     `json:"content,omitempty"`
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
	Output    any     `json:"output,omitempty"`
}

type inputPart struct {
	Type  string  `json:"type"`
	Text  *string `json:"text,omitempty"`
	Image string  `json:"image_url,omitempty"`
}

func inputOf(req *llm.Request) []json.RawMessage {
	out := []json.RawMessage{}
	add := func(item inputItem) {
		if data, err := wire.JSON(item); err == nil {
			out = append(out, data)
		}
	}
	for i := range req.Messages {
		msg := &req.Messages[i]
		if native := wire.Native(msg, llm.Responses); native != nil {
			var items []json.RawMessage
			if json.Unmarshal(native, &items) == nil {
				out = append(out, items...)
				continue
			}
		}
		switch msg.Role {
		case llm.Tool:
			add(inputItem{Type: "function_call_output", CallID: msg.CallID, Output: outputOf(msg)})
			continue
		case llm.Assistant:
			if said := msg.Text(); said != "" {
				add(inputItem{Type: "message", Role: "assistant", Content: said})
			}
		default:
			add(inputItem{Type: "message", Role: string(msg.Role), Content: inputParts(msg.Parts)})
		}
		for _, c := range msg.Calls {
			add(inputItem{Type: "function_call", CallID: c.ID, Name: c.Name, Arguments: &c.Arguments})
		}
	}
	return out
}

// inputParts is the content of a message: a text, or a list where there is more.
func inputParts(parts []llm.Part) any {
	if len(parts) == 1 && parts[0].Image == nil {
		return parts[0].Text
	}
	out := make([]inputPart, len(parts))
	for i, p := range parts {
		if p.Image != nil {
			out[i] = inputPart{Type: "input_image", Image: wire.PictureOf(p.Image).Link()}
		} else {
			out[i] = inputPart{Type: "input_text", Text: &p.Text}
		}
	}
	return out
}

// outputOf is the result of a call: a text, or a list where there are pictures.
func outputOf(msg *llm.Message) any {
	if len(wire.Images(msg)) == 0 {
		return wire.Result(msg)
	}
	parts := msg.Parts
	if msg.Failed {
		parts = append([]llm.Part{{Text: "Error:"}}, parts...)
	}
	return inputParts(parts)
}

func responseTools(tools []llm.ToolSpec) []any {
	out := make([]any, len(tools))
	for i, t := range tools {
		tool := map[string]any{
			"type": "function", "name": t.Name, "parameters": wire.Schema(t.Parameters),
			// The protocol's default is a subset of JSON schema that few schemas keep to.
			"strict": false,
		}
		if t.Description != "" {
			tool["description"] = t.Description
		}
		out[i] = tool
	}
	return out
}

func responseOf(req *llm.Request, answer *responses.Response) *llm.Response {
	out := &llm.Response{
		ID: answer.ID, Model: answer.Model, Finish: llm.Stopped,
		Message: llm.Message{Role: llm.Assistant},
	}
	ids := wire.NewIDs(req.Messages)
	var said, thought strings.Builder
	for i := range answer.Output {
		item := &answer.Output[i]
		switch item.Type {
		case "message":
			for _, c := range item.Content {
				said.WriteString(c.Text + c.Refusal)
				for _, t := range c.Logprobs {
					out.LogProbs = append(out.LogProbs, t.Logprob)
				}
			}
		case "reasoning":
			for _, s := range item.Summary {
				thought.WriteString(s.Text)
			}
			for _, c := range item.Content {
				thought.WriteString(c.Text)
			}
		case "function_call":
			out.Message.Calls = append(out.Message.Calls, llm.ToolCall{
				ID: ids.For(item.CallID), Name: item.Name, Arguments: argumentsOf(json.RawMessage(item.JSON.Arguments.Raw())),
			})
			out.Finish = llm.CallsMade
		}
	}
	if said.Len() > 0 {
		out.Message.Parts = []llm.Part{{Text: said.String()}}
	}
	out.Message.Reasoning = thought.String()
	out.Message.Native = responseNative(answer)
	if answer.Status == responses.ResponseStatusIncomplete {
		out.Finish = wire.ResponsesFinish(out.Finish, answer.IncompleteDetails.Reason)
	}
	out.Usage, out.Cost = wire.ResponsesUsage(json.RawMessage(answer.JSON.Usage.Raw()))
	return out
}

// responseNative keeps the items if there is reasoning among them, which only the
// provider can read, and if every call in them has the id that it is answered by.
func responseNative(answer *responses.Response) *llm.Native {
	reasons := false
	items := make([]json.RawMessage, len(answer.Output))
	for i := range answer.Output {
		item := &answer.Output[i]
		if item.Type == "function_call" && item.CallID == "" {
			return nil
		}
		reasons = reasons || item.Type == "reasoning"
		items[i] = json.RawMessage(item.RawJSON())
	}
	data, err := wire.JSON(items)
	if err != nil || !reasons {
		return nil
	}
	return &llm.Native{API: llm.Responses, Content: data}
}
