package llmtest

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/proctor-run/proctor/llm"
)

type gemini struct{}

func (gemini) api() llm.API { return llm.Gemini }

type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text    string `json:"text"`
		Thought bool   `json:"thought"`
		Call    *struct {
			ID   string          `json:"id"`
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"functionCall"`
		Response *struct {
			ID       string         `json:"id"`
			Response map[string]any `json:"response"`
		} `json:"functionResponse"`
	} `json:"parts"`
}

func (gemini) parse(req *Request) error {
	var body struct {
		System   *geminiContent  `json:"systemInstruction"`
		Contents []geminiContent `json:"contents"`
		Tools    []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	}
	if err := readBody(req, &body); err != nil {
		return err
	}
	_, rest, _ := strings.Cut(req.Path, "/models/")
	name, method, _ := strings.Cut(rest, ":")
	req.Model, req.Stream = name, method == "streamGenerateContent"
	if body.System != nil {
		req.Messages = append(req.Messages, body.System.messages(llm.System)...)
	}
	for _, c := range body.Contents {
		role := llm.User
		if c.Role == "model" {
			role = llm.Assistant
		}
		req.Messages = append(req.Messages, c.messages(role)...)
	}
	for _, t := range body.Tools {
		for _, f := range t.Functions {
			req.Tools = append(req.Tools, f.Name)
		}
	}
	return nil
}

// messages makes a message of each result, and one of the rest.
func (c *geminiContent) messages(role llm.Role) []llm.Message {
	var out []llm.Message
	rest := llm.Message{Role: role}
	for _, p := range c.Parts {
		switch {
		case p.Response != nil:
			text := ""
			for _, key := range []string{"output", "error", "result", "content"} { // clients differ
				if s, ok := p.Response.Response[key].(string); ok {
					text += s
				}
			}
			msg := message(llm.Tool, text)
			msg.CallID, msg.Failed = p.Response.ID, p.Response.Response["error"] != nil
			out = append(out, msg)
		case p.Call != nil:
			rest.Calls = append(rest.Calls, llm.ToolCall{ID: p.Call.ID, Name: p.Call.Name, Arguments: string(p.Call.Args)})
		case !p.Thought:
			rest.Parts = append(rest.Parts, llm.Part{Text: p.Text})
		}
	}
	if len(rest.Parts) > 0 || len(rest.Calls) > 0 || len(out) == 0 {
		out = append(out, rest)
	}
	return out
}

func (gemini) fail(w http.ResponseWriter, f *Fault) {
	empty := `{"usageMetadata":{"promptTokenCount":1}}`
	if f.Kind == Refused {
		f = &Fault{Kind: Empty}
		empty = `{"promptFeedback":{"blockReason":"SAFETY"}}`
	}
	if f.special(w, empty) {
		return
	}
	o := f.of(geminiWords)
	e := object{"code": o.status, "message": o.message, "status": o.class}
	if o.code != "" {
		e["details"] = []any{object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": o.code}}
	}
	sendStatus(w, o.status, object{"error": e})
}

func (gemini) reason(f llm.Finish) string {
	switch f {
	case llm.Length:
		return "MAX_TOKENS"
	case llm.Filtered:
		return "SAFETY"
	}
	return "STOP"
}

func (gemini) parts(a *full) []object {
	var out []object
	if a.Reasoning != "" {
		out = append(out, object{"text": a.Reasoning, "thought": true})
	}
	if a.Text != "" || len(a.calls) == 0 {
		out = append(out, object{"text": a.Text})
	}
	for _, c := range a.calls {
		out = append(out, object{"functionCall": object{"id": c.ID, "name": c.Name, "args": argumentsOf(c)}})
	}
	if a.Signature != "" {
		out[len(out)-1]["thoughtSignature"] = a.Signature
	}
	return out
}

// piece is a part of the answer. Each tells what was used so far, and the last one the reason.
func (d gemini) piece(req *Request, a *full, parts []object, last bool) object {
	candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
	used := object{"promptTokenCount": a.usage.Prompt, "cachedContentTokenCount": a.usage.Cached, "totalTokenCount": a.usage.Prompt}
	out := object{"candidates": []any{candidate}, "usageMetadata": used, "modelVersion": req.Model, "responseId": a.id}
	if !last {
		return out
	}
	candidate["finishReason"] = d.reason(a.finish)
	if a.LogProbs != nil {
		chosen := []any{}
		for i, p := range a.LogProbs {
			c := object{"token": "", "logProbability": p}
			if i < len(a.CompletionTokenIDs) {
				c["tokenId"] = a.CompletionTokenIDs[i]
			}
			chosen = append(chosen, c)
		}
		candidate["logprobsResult"] = object{"chosenCandidates": chosen}
	}
	used["candidatesTokenCount"], used["totalTokenCount"] = a.usage.Completion, a.usage.Prompt+a.usage.Completion
	return out
}

func (d gemini) whole(req *Request, a *full) any { return d.piece(req, a, d.parts(a), true) }

func (d gemini) events(req *Request, a *full) []event {
	var out []event
	parts := d.parts(a)
	for i, p := range parts {
		out = append(out, event{data: d.piece(req, a, []object{p}, i == len(parts)-1)})
	}
	return out
}
