// Package llmtest has models for tests: one that follows a script, and a server that
// speaks the protocols of the providers.
package llmtest

import (
	"context"
	"fmt"
	"sync"

	"github.com/proctor-run/proctor/llm"
)

// Script is a model that gives its answers in order, and keeps what it was asked.
type Script struct {
	// About is what Info returns.
	About llm.Info
	// Answers are taken in order. A call beyond them fails.
	Answers []Answer

	mu       sync.Mutex
	requests []llm.Request
}

// Answer is what one call brings.
type Answer struct {
	Response *llm.Response
	Err      error
}

// Say is an answer of text, which used 10 tokens of prompt and 5 of completion.
func Say(text string) Answer {
	return Answer{Response: &llm.Response{
		Message: llm.TextMessage(llm.Assistant, text), Finish: llm.Stopped,
		Usage: &llm.Usage{Prompt: 10, Completion: 5},
	}}
}

// Call is an answer that calls tools, with the usage of [Say].
func Call(calls ...llm.ToolCall) Answer {
	return Answer{Response: &llm.Response{
		Message: llm.Message{Role: llm.Assistant, Calls: calls}, Finish: llm.CallsMade,
		Usage: &llm.Usage{Prompt: 10, Completion: 5},
	}}
}

// Info returns s.About.
func (s *Script) Info() llm.Info { return s.About }

// Complete gives the next answer.
func (s *Script) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.requests)
	own := *req
	own.Messages = append([]llm.Message(nil), req.Messages...)
	s.requests = append(s.requests, own)
	if n >= len(s.Answers) {
		return nil, &llm.Error{Kind: llm.BadRequest, Model: s.About.Name, Message: fmt.Sprintf("the script has no answer %d", n+1)}
	}
	return s.Answers[n].Response, s.Answers[n].Err
}

// Requests returns what was asked, in order.
func (s *Script) Requests() []llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]llm.Request(nil), s.requests...)
}
