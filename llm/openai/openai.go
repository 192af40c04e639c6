// Package openai speaks the two protocols of OpenAI, chat completions and responses, with
// whoever offers them.
package openai

import (
	"context"
	"strconv"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
	"github.com/proctor-run/proctor/value"
)

// New makes the model of an endpoint, which speaks the responses protocol if its API says
// so, else chat completions.
func New(e llm.Endpoint) (llm.Model, error) {
	conn, err := wire.Dial(e, optional())
	if err != nil {
		return nil, err
	}
	m := model{Conn: conn}
	// The client is not made by the library's constructor, which reads variables.
	m.client.Options = []option.RequestOption{
		option.WithEnvironmentProduction(),
		option.WithHTTPClient(conn.Client()),
		option.WithMaxRetries(0),
	}
	if conn.Base != "" {
		m.client.Options = append(m.client.Options, option.WithBaseURL(conn.Base+"/"))
	}
	if conn.Key != "" {
		m.client.Options = append(m.client.Options, option.WithAPIKey(conn.Key))
	}
	if e.API == llm.Responses {
		return &responsesModel{m}, nil
	}
	return &chatModel{m}, nil
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

type model struct {
	*wire.Conn
	client sdk.Client
}

func (m *model) post(path string, into any) func(context.Context, []byte) error {
	return func(ctx context.Context, body []byte) error {
		return m.client.Post(ctx, path, body, into) //nolint:wrapcheck // the connection words it
	}
}

// hasEffort: the request says how much to think, which "default" does not.
func hasEffort(req *llm.Request) bool { return req.Effort != "" && req.Effort != "default" }

// text is a member that is not part of the protocol, if it is text.
func text(fields map[string]respjson.Field, key string) string {
	v, err := value.Decode([]byte(fields[key].Raw()))
	if err != nil {
		return ""
	}
	s, _ := v.(value.Str)
	return string(s)
}

// numbers is a member that is a list of whole numbers; nil for anything else.
func numbers(fields map[string]respjson.Field, key string) []int64 {
	v, err := value.Decode([]byte(fields[key].Raw()))
	if err != nil {
		return nil
	}
	list, _ := v.(value.List)
	var out []int64
	for _, item := range list {
		n, err := strconv.ParseInt(value.Repr(item), 10, 64)
		if err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}

// number is a member that is a number; nil for anything else.
func number(fields map[string]respjson.Field, key string) *float64 {
	f, err := strconv.ParseFloat(fields[key].Raw(), 64)
	if err != nil || f < 0 {
		return nil
	}
	return &f
}

// cost is what the provider says that the call cost.
func cost(usage map[string]respjson.Field) *float64 { return number(usage, "cost") }

func whole(f *float64) int64 {
	if f == nil || *f > 1<<53 {
		return 0
	}
	return int64(*f)
}
