// Package anthropic speaks the messages protocol of Anthropic.
package anthropic

import (
	"context"
	"encoding/json"
	"math"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// New makes the model of an endpoint.
func New(e llm.Endpoint) (llm.Model, error) {
	conn, err := wire.Dial(e, []wire.Optional{
		{Name: "session_id", Members: []string{"session_id"}},
		{Name: "temperature", Members: []string{"temperature"}},
		{Name: "thinking", Members: []string{"thinking"}, Words: []string{"thinking.type.enabled"}},
		{Name: "output_config", Members: []string{"output_config"}, Words: []string{"effort", "adaptive"}},
	})
	if err != nil {
		return nil, err
	}
	m := &model{Conn: conn}
	// The service alone: with the library's whole client, each of its hundreds of methods
	// would be part of the program, and the client's constructor reads variables.
	m.service.Options = []option.RequestOption{
		option.WithEnvironmentProduction(),
		option.WithHTTPClient(conn.Client()),
		option.WithMaxRetries(0),
		// Else the library refuses long answers and bounds the time; the context does that.
		option.WithRequestTimeout(math.MaxInt64),
		option.WithHeaderDel("X-Stainless-Timeout"),
	}
	if base := strings.TrimSuffix(conn.Base, "/v1"); base != "" {
		m.service.Options = append(m.service.Options, option.WithBaseURL(base+"/"))
	}
	switch {
	case conn.Key == "":
	case conn.Bearer:
		m.service.Options = append(m.service.Options, option.WithAuthToken(conn.Key))
	default:
		m.service.Options = append(m.service.Options, option.WithAPIKey(conn.Key))
	}
	return m, nil
}

type model struct {
	*wire.Conn
	service sdk.MessageService
}

// Complete asks for the next message.
func (m *model) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	var answer *sdk.Message
	x, err := m.Ask(ctx, req, wire.Call{
		Build: func(without map[string]bool) *wire.Body { return m.body(req, without) },
		Send: func(ctx context.Context, body []byte) error {
			var err error
			answer, err = m.service.New(ctx, sdk.MessageNewParams{}, option.WithRequestBody("application/json", body))
			return err //nolint:wrapcheck // the connection words it
		},
	})
	if err != nil {
		return nil, err
	}
	if !answer.JSON.Content.Valid() {
		return nil, m.Unusable(x, "the answer has no content")
	}
	if answer.StopReason == sdk.StopReasonModelContextWindowExceeded && len(answer.Content) == 0 {
		return nil, m.Fail(llm.ContextLength, x, "the conversation fills the context window")
	}
	return responseOf(req, answer), nil
}

// responseOf reads an answer. Blocks of other kinds than text, thinking and the use of
// tools stay in the native form.
func responseOf(req *llm.Request, answer *sdk.Message) *llm.Response {
	out := &llm.Response{
		ID: answer.ID, Model: answer.Model, Finish: wire.AnthropicFinish(string(answer.StopReason)),
		Message: llm.Message{Role: llm.Assistant},
	}
	ids := wire.NewIDs(req.Messages)
	for i := range answer.Content {
		block := &answer.Content[i]
		switch block.Type {
		case "text":
			out.Message.Parts = append(out.Message.Parts, llm.Part{Text: block.Text})
		case "thinking":
			out.Message.Reasoning += block.Thinking
		case "tool_use":
			arguments := string(block.Input)
			if arguments == "" {
				arguments = "{}"
			}
			out.Message.Calls = append(out.Message.Calls, llm.ToolCall{
				ID: ids.For(block.ID), Name: block.Name, Arguments: arguments,
			})
		}
	}
	if len(out.Message.Calls) > 0 && out.Finish == llm.Stopped {
		out.Finish = llm.CallsMade
	}
	out.Message.Native = nativeOf(answer)
	out.Usage, out.Cost = wire.AnthropicUsage(json.RawMessage(answer.JSON.Usage.Raw()))
	return out
}

// nativeOf keeps the blocks if there are any that only the provider can read, and if
// every call in them has the id that it is answered by.
func nativeOf(answer *sdk.Message) *llm.Native {
	signed := false
	blocks := make([]string, len(answer.Content))
	for i := range answer.Content {
		block := &answer.Content[i]
		switch block.Type {
		case "text":
		case "tool_use":
			if block.ID == "" {
				return nil
			}
		default:
			signed = true
		}
		blocks[i] = block.RawJSON()
	}
	if !signed {
		return nil
	}
	return &llm.Native{API: llm.Anthropic, Content: []byte("[" + strings.Join(blocks, ",") + "]")}
}
