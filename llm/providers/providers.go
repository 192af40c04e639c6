// Package providers has all providers of models. It is apart from package llm so that a
// program which needs none of them has none of their libraries.
package providers

import (
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/providers/internal/anthropic"
	"github.com/proctor-run/proctor/llm/providers/internal/gemini"
	"github.com/proctor-run/proctor/llm/providers/internal/openai"
)

// Dial makes the model of an endpoint, by its API. It is an [llm.Dialer].
func Dial(e llm.Endpoint) (llm.Model, error) {
	switch e.API {
	case llm.Chat, llm.Responses:
		return openai.New(e)
	case llm.Anthropic:
		return anthropic.New(e)
	case llm.Gemini:
		return gemini.New(e)
	}
	return nil, exception.Errorf(exception.ValueError,
		"model %s: there is no protocol %q; there are chat, responses, anthropic and gemini", e.Name, string(e.API))
}
