package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/proctor-run/proctor/value"
)

// line is one line of a recording: Schema, Model and Info are those of a model's line,
// Cut is the whole of the line that ends a recording which has not all calls.
type line struct {
	Schema   string        `json:"schema,omitempty"`
	Call     int64         `json:"call,omitempty"`
	Model    string        `json:"model,omitempty"`
	Info     *infoJSON     `json:"info,omitempty"`
	Request  string        `json:"request,omitempty"`
	Response *responseJSON `json:"response,omitempty"`
	Exchange *exchangeJSON `json:"exchange,omitempty"`
	Error    *errorJSON    `json:"error,omitempty"`
	Duration *int64        `json:"duration_ms,omitempty"`
	Cut      string        `json:"cut,omitempty"`
}

type infoJSON struct {
	Name        string      `json:"name"`
	InputLimit  int64       `json:"input_limit,omitempty"`
	OutputLimit int64       `json:"output_limit,omitempty"`
	Prices      *pricesJSON `json:"prices,omitempty"`
}

type pricesJSON struct {
	Input      float64     `json:"input"`
	Output     float64     `json:"output"`
	CacheRead  *float64    `json:"cache_read,omitempty"`
	CacheWrite *float64    `json:"cache_write,omitempty"`
	Above      *pricesJSON `json:"above,omitempty"`
	AboveInput int64       `json:"above_input,omitempty"`
}

func newInfoJSON(i Info) *infoJSON {
	return &infoJSON{i.Name, i.InputLimit, i.OutputLimit, newPricesJSON(i.Prices, maxPrices)}
}

// maxPrices bounds how many prices stand above one another.
const maxPrices = 8

func newPricesJSON(p *Prices, depth int) *pricesJSON {
	if p == nil || depth == 0 {
		return nil
	}
	return &pricesJSON{p.Input, p.Output, p.CacheRead, p.CacheWrite, newPricesJSON(p.Above, depth-1), p.AboveInput}
}

func (i *infoJSON) info() Info {
	return Info{Name: i.Name, InputLimit: i.InputLimit, OutputLimit: i.OutputLimit, Prices: i.Prices.prices(maxPrices)}
}

func (p *pricesJSON) prices(depth int) *Prices {
	if p == nil || depth == 0 {
		return nil
	}
	return &Prices{p.Input, p.Output, p.CacheRead, p.CacheWrite, p.Above.prices(depth - 1), p.AboveInput}
}

// errorJSON is an [Error] where Kind is there, else one of Type.
type errorJSON struct {
	Kind        Kind   `json:"kind,omitempty"`
	Status      int    `json:"status,omitempty"`
	Type        string `json:"type,omitempty"`
	Message     string `json:"message"`
	RetryAfter  int64  `json:"retry_after_ms,omitempty"`
	Interrupted bool   `json:"interrupted,omitempty"`
}

func (e *errorJSON) retryAfter() time.Duration {
	return time.Duration(min(max(e.RetryAfter, 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

type responseJSON struct {
	Message            messageJSON     `json:"message"`
	Finish             Finish          `json:"finish,omitempty"`
	Model              string          `json:"model,omitempty"`
	ID                 string          `json:"id,omitempty"`
	Usage              *usageJSON      `json:"usage,omitempty"`
	Cost               *float64        `json:"cost,omitempty"`
	PromptTokenIDs     []int64         `json:"prompt_token_ids,omitzero"`
	CompletionTokenIDs []int64         `json:"completion_token_ids,omitzero"`
	LogProbs           []logProb       `json:"logprobs,omitzero"`
	Extra              json.RawMessage `json:"extra,omitempty"`
}

type usageJSON struct {
	Prompt     int64 `json:"prompt"`
	Completion int64 `json:"completion"`
	Cached     int64 `json:"cached,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
}

func newUsageJSON(u *Usage) *usageJSON {
	if u == nil {
		return nil
	}
	return &usageJSON{u.Prompt, u.Completion, u.Cached, u.CacheWrite}
}

func (u *usageJSON) usage() *Usage {
	if u == nil {
		return nil
	}
	return &Usage{u.Prompt, u.Completion, u.Cached, u.CacheWrite}
}

// messageJSON is a message whose native form stands as it is, so that secrets are found in
// it. What is no JSON is left out.
type messageJSON struct {
	Role      Role        `json:"role"`
	Parts     []Part      `json:"parts,omitzero"`
	Reasoning string      `json:"reasoning,omitempty"`
	Calls     []ToolCall  `json:"calls,omitzero"`
	CallID    string      `json:"call_id,omitempty"`
	Failed    bool        `json:"failed,omitempty"`
	Cache     bool        `json:"cache,omitempty"`
	Native    *nativeJSON `json:"native,omitempty"`
}

type nativeJSON struct {
	API     API             `json:"api"`
	Content json.RawMessage `json:"content"`
}

func newMessageJSON(m *Message) messageJSON {
	out := messageJSON{m.Role, m.Parts, m.Reasoning, m.Calls, m.CallID, m.Failed, m.Cache, nil}
	if m.Native != nil && json.Valid(m.Native.Content) {
		out.Native = &nativeJSON{m.Native.API, m.Native.Content}
	}
	return out
}

// message is a message that shares nothing with the one that was read.
func (m *messageJSON) message() Message {
	out := Message{m.Role, slices.Clone(m.Parts), m.Reasoning, slices.Clone(m.Calls), m.CallID, m.Failed, m.Cache, nil}
	for i, p := range out.Parts {
		if p.Image != nil {
			out.Parts[i].Image = &Image{p.Image.MediaType, bytes.Clone(p.Image.Data), p.Image.URL}
		}
	}
	if m.Native != nil {
		out.Native = &Native{m.Native.API, bytes.Clone(m.Native.Content)}
	}
	return out
}

func newResponseJSON(r *Response) *responseJSON {
	out := &responseJSON{
		Message: newMessageJSON(&r.Message), Finish: r.Finish, Model: r.Model, ID: r.ID, Cost: r.Cost,
		PromptTokenIDs: r.PromptTokenIDs, CompletionTokenIDs: r.CompletionTokenIDs, Extra: objectJSON(r.Extra),
	}
	out.Usage = newUsageJSON(r.Usage)
	if r.LogProbs != nil {
		out.LogProbs = make([]logProb, len(r.LogProbs))
		for i, p := range r.LogProbs {
			out.LogProbs[i] = logProb(p)
		}
	}
	return out
}

// response is a response that shares nothing with what was read.
func (r *responseJSON) response() (*Response, error) {
	out := &Response{
		Message: r.Message.message(), Finish: r.Finish, Model: r.Model, ID: r.ID,
		PromptTokenIDs: slices.Clone(r.PromptTokenIDs), CompletionTokenIDs: slices.Clone(r.CompletionTokenIDs),
	}
	out.Usage = r.Usage.usage()
	if r.Cost != nil {
		out.Cost = new(*r.Cost)
	}
	if r.LogProbs != nil {
		out.LogProbs = make([]float64, len(r.LogProbs))
		for i, p := range r.LogProbs {
			out.LogProbs[i] = float64(p)
		}
	}
	if len(r.Extra) > 0 && string(r.Extra) != "null" {
		v, err := value.Decode(r.Extra)
		if err != nil {
			return nil, fmt.Errorf("reading extra: %w", err)
		}
		o, ok := v.(*value.Object)
		if !ok {
			return nil, errors.New("extra is not an object")
		}
		out.Extra = o
	}
	return out, nil
}

// objectJSON is an object as JSON; nil for none, and for what is no JSON.
func objectJSON(o *value.Object) json.RawMessage {
	if o == nil {
		return nil
	}
	data := value.AppendPydantic(nil, o, 0)
	if !json.Valid(data) {
		return nil
	}
	return data
}

// logProb is a number that may be infinite, which is a text then.
type logProb float64

// MarshalJSON writes the number.
func (p logProb) MarshalJSON() ([]byte, error) {
	f := float64(p)
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return strconv.AppendQuote(nil, strconv.FormatFloat(f, 'g', -1, 64)), nil
	}
	data, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("writing a number: %w", err)
	}
	return data, nil
}

// UnmarshalJSON reads a number.
func (p *logProb) UnmarshalJSON(data []byte) error {
	text := string(data)
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("reading a number: %w", err)
	}
	*p = logProb(f)
	return nil
}

// requestJSON is what is digested of a request.
type requestJSON struct {
	Messages       []messageJSON   `json:"messages"`
	Tools          []toolJSON      `json:"tools,omitempty"`
	MaxOutput      int64           `json:"max_output,omitempty"`
	Temperature    *float64        `json:"temperature,omitempty"`
	Effort         string          `json:"effort,omitempty"`
	ThinkingTokens int64           `json:"thinking_tokens,omitempty"`
	SendReasoning  bool            `json:"send_reasoning,omitempty"`
	Tokens         bool            `json:"tokens,omitempty"`
	PreviousID     string          `json:"previous_id,omitempty"`
	Extra          json.RawMessage `json:"extra,omitempty"`
}

type toolJSON struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

func newRequestJSON(r *Request) *requestJSON {
	out := &requestJSON{
		Messages: make([]messageJSON, len(r.Messages)), MaxOutput: r.MaxOutput, Temperature: r.Temperature, Effort: r.Effort,
		ThinkingTokens: r.ThinkingTokens, SendReasoning: r.SendReasoning, Tokens: r.Tokens, PreviousID: r.PreviousID, Extra: objectJSON(r.Extra),
	}
	for i := range r.Messages {
		m := newMessageJSON(&r.Messages[i])
		if len(m.Parts) == 0 {
			m.Parts = nil
		}
		if len(m.Calls) == 0 {
			m.Calls = nil
		}
		out.Messages[i] = m
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, toolJSON{t.Name, t.Description, objectJSON(t.Parameters)})
	}
	return out
}
