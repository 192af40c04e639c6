// Package openai speaks the two protocols of OpenAI, chat completions and responses, with
// whoever offers them.
//
// Responses come through the provider's library. Chat completions, which is spoken by
// servers that take liberties with it, is read here: the library's part for it would be a
// fifth of the program.
package openai

import (
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// New makes the model of an endpoint, which speaks the responses protocol if its API says
// so, else chat completions.
func New(e llm.Endpoint) (llm.Model, error) {
	conn, err := wire.Dial(e, optional())
	if err != nil {
		return nil, err
	}
	if e.API != llm.Responses {
		return &chatModel{conn}, nil
	}
	options := []option.RequestOption{
		option.WithBaseURL(wire.Address(llm.Responses, conn.Base, "/")),
		option.WithHTTPClient(conn.Client()),
		option.WithMaxRetries(0),
	}
	if conn.Key != "" {
		options = append(options, option.WithAPIKey(conn.Key))
	}
	// The service alone reads no variables, as the library's client would.
	return &responsesModel{Conn: conn, service: responses.NewResponseService(options...)}, nil
}

// optional are the parameters that some servers, or some models, do not take.
func optional() []wire.Optional {
	return []wire.Optional{
		{Name: "return_token_ids", Members: []string{"return_token_ids"}, Once: true},
		{Name: "session_id", Members: []string{"session_id"}, Once: true},
		{Name: "temperature", Members: []string{"temperature"}},
		{Name: "reasoning_effort", Members: []string{"reasoning_effort", "reasoning"}, Words: []string{"reasoning.effort"}},
		{Name: "thinking", Members: []string{"thinking"}},
		{Name: "logprobs", Members: []string{"logprobs"}, Words: []string{"top_logprobs"}},
		{Name: "include", Members: []string{"include"}, Words: []string{"encrypted content", "encrypted_content", "logprobs"}},
		// The two words for the bound are each other's replacement.
		{Name: "max_tokens", Members: []string{"max_tokens"}},
		{Name: "max_completion_tokens", Members: []string{"max_completion_tokens"}},
	}
}

// hasEffort: the request says how much to think, which "default" does not.
func hasEffort(req *llm.Request) bool { return req.Effort != "" && req.Effort != "default" }
