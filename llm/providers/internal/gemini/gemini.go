// Package gemini speaks the generateContent protocol of Gemini.
//
// It has the few types of the protocol that it needs itself: the provider's library can
// only be started with a look at variables of the process, and is many times their size.
package gemini

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// New makes the model of an endpoint.
func New(e llm.Endpoint) (llm.Model, error) {
	conn, err := wire.Dial(e, []wire.Optional{
		{Name: "session_id", Members: []string{"session_id"}},
		{Name: "temperature", Members: []string{"temperature"}},
		{Name: "thinkingLevel", Members: []string{"thinkingLevel"}, Words: []string{"thinking level", "thinking_level"}},
		{Name: "thinkingConfig", Members: []string{"thinkingBudget"},
			Words: []string{"thinking budget", "thinking_budget", "thinking", "thinkingConfig", "thinking_config"}},
		{Name: "logprobs", Members: []string{"responseLogprobs"}, Words: []string{"logprobs", "response_logprobs"}},
	})
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(e.Model, "models/")
	address := wire.Address(llm.Gemini, conn.Base, "/models/"+url.PathEscape(name)+":generateContent")
	return &model{Conn: conn, address: address}, nil
}

type model struct {
	*wire.Conn
	address string
}

// Complete asks for the next message.
func (m *model) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	header := http.Header{}
	wire.Authorize(header, &m.Endpoint, llm.Gemini)
	x, err := m.Ask(ctx, req, wire.Call{
		Build: func(without map[string]bool) *wire.Body { return m.body(req, without) },
		Send: func(ctx context.Context, body []byte) error {
			return m.Post(ctx, m.address, header.Clone(), body)
		},
	})
	if err != nil {
		return nil, err
	}
	var a answer
	if err := x.Decode(&a); err != nil {
		return nil, m.Unusable(x, err.Error())
	}
	if len(a.Candidates) == 0 {
		if why := a.Feedback.BlockReason; why != "" {
			return nil, m.Fail(llm.Refused, x, strings.TrimSpace("the prompt was blocked: "+why+" "+a.Feedback.Message))
		}
		return nil, m.Unusable(x, "the answer has no candidate")
	}
	if c := a.Candidates[0]; c.Finish == "MALFORMED_FUNCTION_CALL" && len(c.parts()) == 0 {
		return nil, m.Unusable(x, "the model's call of a tool was malformed")
	}
	return a.response(req), nil
}

type answer struct {
	Candidates []candidate `json:"candidates"`
	Feedback   struct {
		BlockReason string `json:"blockReason"`
		Message     string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage json.RawMessage `json:"usageMetadata"`
	Model string          `json:"modelVersion"`
	ID    string          `json:"responseId"`
}

type candidate struct {
	Content  json.RawMessage `json:"content"`
	Finish   string          `json:"finishReason"`
	Logprobs struct {
		Chosen []struct {
			ID      int64   `json:"tokenId"`
			Logprob float64 `json:"logProbability"`
		} `json:"chosenCandidates"`
	} `json:"logprobsResult"`
}

// parts are those of the content; none where it cannot be read.
func (c *candidate) parts() []part {
	var v content
	if json.Unmarshal(c.Content, &v) != nil {
		return nil
	}
	return v.Parts
}

func (a *answer) response(req *llm.Request) *llm.Response {
	c := &a.Candidates[0]
	out := &llm.Response{
		ID: a.ID, Model: a.Model, Finish: wire.GeminiFinish(c.Finish),
		Message: llm.Message{Role: llm.Assistant},
	}
	signed := c.read(req, out)
	if signed {
		out.Message.Native = &llm.Native{API: llm.Gemini, Content: c.Content}
	}
	if len(out.Message.Calls) > 0 && out.Finish == llm.Stopped {
		out.Finish = llm.CallsMade
	}
	out.Usage = wire.GeminiUsage(a.Usage)
	if req.Tokens {
		for _, t := range c.Logprobs.Chosen {
			out.LogProbs = append(out.LogProbs, t.Logprob)
			out.CompletionTokenIDs = append(out.CompletionTokenIDs, t.ID)
		}
	}
	return out
}

// read takes the parts, and tells whether one has a signature.
func (c *candidate) read(req *llm.Request, out *llm.Response) (signed bool) {
	ids := wire.NewIDs(req.Messages)
	said := ""
	for _, p := range c.parts() {
		signed = signed || p.Signature != ""
		switch {
		case p.Call != nil:
			arguments := string(p.Call.Args)
			if arguments == "" || arguments == "null" {
				arguments = "{}"
			}
			out.Message.Calls = append(out.Message.Calls, llm.ToolCall{
				ID: ids.For(p.Call.ID), Name: p.Call.Name, Arguments: arguments,
			})
		case p.Thought:
			out.Message.Reasoning += p.Text
		default:
			said += p.Text
		}
	}
	if said != "" {
		out.Message.Parts = []llm.Part{{Text: said}}
	}
	return signed
}
