package wire

import (
	"net/http"
	"strings"

	"github.com/proctor-run/proctor/llm"
)

// The addresses of those whose own the protocols are.
const (
	openaiBase    = "https://api.openai.com/v1"
	anthropicBase = "https://api.anthropic.com"
	geminiBase    = "https://generativelanguage.googleapis.com"

	anthropicVersion = "/v1"
	geminiVersion    = "/v1beta"
)

// Address is where requests of a protocol go: a path, which begins behind the version,
// below a base, which has the version at its end where the protocol is one of OpenAI's and
// may have it elsewhere. An empty base is that of the provider whose own the protocol is.
func Address(api llm.API, base, path string) string {
	base = strings.TrimRight(base, "/")
	switch api {
	case llm.Anthropic:
		return strings.TrimSuffix(or(base, anthropicBase), anthropicVersion) + anthropicVersion + path
	case llm.Gemini:
		return strings.TrimSuffix(or(base, geminiBase), geminiVersion) + geminiVersion + path
	}
	return or(base, openaiBase) + path
}

func or(base, own string) string {
	if base == "" {
		return own
	}
	return base
}

// Authorize puts the key of an endpoint into the headers of a request in a protocol, where
// there is a key.
func Authorize(h http.Header, e *llm.Endpoint, api llm.API) {
	switch {
	case e.Key == "":
	case api == llm.Anthropic && e.API == api && !e.Bearer:
		h.Set("X-Api-Key", e.Key)
	case api == llm.Gemini && !e.Bearer:
		h.Set("X-Goog-Api-Key", e.Key)
	default:
		h.Set("Authorization", "Bearer "+e.Key)
	}
}
