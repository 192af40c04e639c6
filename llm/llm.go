// Package llm is one interface to the providers of language models.
//
// A [Model] answers calls: a conversation goes in, the next message of the assistant
// comes out, with what it used and cost. A [Client] opens models by name
// ("anthropic/claude-…", "openai/…", "gemini/…", or any server that speaks one of their
// protocols), finds keys and addresses, and is shared by the trials of a job: it retries,
// waits as providers ask, and keeps one rate for all of them.
//
// What is not known is not guessed: a model without a price has no cost, which is not a
// cost of zero.
//
// The rules are those of Harbor's agents, section 5.
package llm

import (
	"context"

	"github.com/proctor-run/proctor/value"
)

// Model answers calls. It may be used by several goroutines.
type Model interface {
	// Info tells of the model what is known without a call.
	Info() Info
	// Complete asks for the next message. The error is an [*Error] unless ctx ended; a
	// failed call changes nothing.
	Complete(ctx context.Context, req *Request) (*Response, error)
}

// Info describes a model.
type Info struct {
	// Name is the name as it was configured, "provider/model".
	Name string
	// InputLimit and OutputLimit are in tokens; 0 is unknown.
	InputLimit, OutputLimit int64
	// Prices is nil where they are unknown.
	Prices *Prices
}

// Prices are in US dollars for each token.
type Prices struct {
	Input, Output float64
	// CacheRead and CacheWrite are those of prompt tokens that were read from the
	// provider's cache or written to it; nil where they cost what others do.
	CacheRead, CacheWrite *float64
	// Above are the prices of calls whose prompt has more than AboveInput tokens; nil
	// where they cost what others do.
	Above      *Prices
	AboveInput int64
}

// Role is who a message is from.
type Role string

// The roles. A Tool message has the result of one call.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role  Role
	Parts []Part
	// Reasoning is what an assistant's message was thought out with, where the provider
	// tells. It is sent back only where [Request.SendReasoning] asks for it.
	Reasoning string
	// Calls are what an assistant wants to be done.
	Calls []ToolCall
	// CallID and Failed are of a Tool message: the call that it answers, and that it
	// failed.
	CallID string
	Failed bool
	// Cache asks the provider to keep what leads up to this message. Providers that
	// need no mark ignore it; of more marks than a provider takes, the last ones count.
	Cache bool
	// Native is an assistant's message as its provider gave it. Sent to a provider of
	// the same protocol it takes the place of the other fields, so that what only the
	// provider can read (signed reasoning) survives. Editing a message drops it.
	Native *Native
}

// Native is a message in the form of a protocol: JSON.
type Native struct {
	API     API
	Content []byte
}

// Part is a text or, where Image is not nil, an image.
type Part struct {
	Text  string
	Image *Image
}

// Image is a picture: Data, or where that is empty the URL.
type Image struct {
	// MediaType is "image/png" and the like.
	MediaType string
	Data      []byte
	URL       string
}

// TextMessage is a message of one text.
func TextMessage(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Text: text}}}
}

// Text is the text of the parts, one after the other.
func (m *Message) Text() string {
	if len(m.Parts) == 1 {
		return m.Parts[0].Text
	}
	text := ""
	for _, p := range m.Parts {
		text += p.Text
	}
	return text
}

// ToolCall is the use of a tool that an assistant asks for.
type ToolCall struct {
	// ID is the provider's; where it gives none, one that is unlike those of the
	// conversation.
	ID   string
	Name string
	// Arguments is what the model wrote: JSON, if it did well.
	Arguments string
}

// ToolSpec tells a model of a tool.
type ToolSpec struct {
	Name        string
	Description string
	// Parameters is a JSON schema of type object; nil for no parameters.
	Parameters *value.Object
}

// Request is one call.
type Request struct {
	Messages []Message
	Tools    []ToolSpec
	// MaxOutput bounds the answer, in tokens; 0 is the provider's own bound, or where it
	// needs one the known limit of the model.
	MaxOutput int64
	// Temperature is sent only where it is set.
	Temperature *float64
	// Effort is how much the model should think: "none", "minimal", "low", "medium",
	// "high", "xhigh", "max" or "default"; empty says nothing.
	Effort string
	// ThinkingTokens bounds the thinking of models that are bounded so; 0 says nothing.
	ThinkingTokens int64
	// SendReasoning sends the reasoning of earlier messages back.
	SendReasoning bool
	// Tokens asks for token ids and log probabilities.
	Tokens bool
	// SessionID is sent where it is not empty.
	SessionID string
	// PreviousID continues the response of this id; the messages are then those that
	// came since. Only the protocol "responses" has it.
	PreviousID string
	// Extra are members of the request's body that have no place here; they win over
	// those that the protocol would set.
	Extra *value.Object
}

// Finish is why an answer ended.
type Finish string

// The reasons. An answer that Length ended is there in part.
const (
	Stopped   Finish = "stop"
	CallsMade Finish = "tool_calls"
	Length    Finish = "length"
	Filtered  Finish = "content_filter"
)

// Response is the answer to a call.
type Response struct {
	// Message is the assistant's.
	Message Message
	Finish  Finish
	// Model is the name under which the provider answered; ID the provider's own for the
	// response. Either may be empty.
	Model, ID string
	// Usage is nil where the provider did not tell.
	Usage *Usage
	// Cost is in US dollars, nil where it is not known: what the provider said, else
	// what the prices make of the usage.
	Cost *float64
	// Token ids and natural logarithms of probabilities, where they were asked for and
	// the provider gave them.
	PromptTokenIDs, CompletionTokenIDs []int64
	LogProbs                           []float64
	// Extra are other members that a provider added to its answer; nil for none.
	Extra *value.Object
}

// Usage counts the tokens of a call.
type Usage struct {
	// Prompt includes Cached, what was read from the provider's cache, and CacheWrite,
	// what was written to it.
	Prompt, Completion, Cached, CacheWrite int64
}

// API is a protocol.
type API string

// The protocols that are spoken.
const (
	Chat      API = "chat"      // OpenAI's chat completions, and of everybody who took them over
	Responses API = "responses" // OpenAI's responses
	Anthropic API = "anthropic" // Anthropic's messages
	Gemini    API = "gemini"    // Gemini's generateContent
)
