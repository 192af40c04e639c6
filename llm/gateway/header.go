package gateway

import (
	"net/http"
	"strings"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// asked are the headers of a call that are passed on: what the protocols know, and who
// asks. Keys, accounts and whatever is about one connection stay behind.
func asked(h http.Header) http.Header {
	return only(h, []string{
		"User-Agent", "Http-Referer", "X-Title", "Originator",
		"Session_id", "Session-Id", "Conversation_id", "Thread-Id", "X-App", "X-Goog-Api-Client",
	}, []string{"Anthropic-", "Openai-Beta", "X-Stainless-", "X-Codex-"})
}

// readable tells of a text for Accept that it asks for nothing that the gateway cannot read.
func readable(accept string) bool {
	for kind := range strings.SplitSeq(accept, ",") {
		switch kind, _, _ = strings.Cut(kind, ";"); strings.ToLower(strings.TrimSpace(kind)) {
		case "application/json", "text/event-stream", "*/*":
		default:
			return false
		}
	}
	return true
}

// answered are the headers of an answer that are passed on: none that has the key in it.
func answered(h http.Header, key string) http.Header {
	out := passed(h)
	if !secret(key) {
		return out
	}
	for name, values := range out {
		for _, text := range append(values, name) {
			if strings.Contains(strings.ToLower(text), strings.ToLower(key)) {
				delete(out, name)
			}
		}
	}
	return out
}

func passed(h http.Header) http.Header {
	return only(h, []string{
		"Content-Type", "Retry-After", "Retry-After-Ms", "X-Should-Retry", "Request-Id", "X-Request-Id",
		"Openai-Processing-Ms", "Openai-Model", "X-Codex-Turn-State",
	}, []string{"Anthropic-Ratelimit-", "X-Ratelimit-"})
}

// only are the headers of these names, and of those that begin so.
func only(h http.Header, names, prefixes []string) http.Header {
	out := http.Header{}
	for name, values := range h {
		keep := false
		for _, n := range names {
			keep = keep || strings.EqualFold(name, n)
		}
		for _, p := range prefixes {
			keep = keep || len(name) >= len(p) && strings.EqualFold(name[:len(p)], p)
		}
		if keep {
			out[name] = values
		}
	}
	return out
}

// request makes the request of a call at the provider's. The key of the endpoint is in it.
func (c *call) request() (*http.Request, error) {
	e := &c.g.Route.Endpoint
	r, err := http.NewRequest(http.MethodPost, wire.Address(c.op.api, e.Base, c.target), nil)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what failed
	}
	r.Header = asked(c.r.Header)
	// What was read as JSON must not be read as anything else, and what comes must be what
	// can be counted.
	r.Header.Set("Content-Type", "application/json")
	if accept := c.r.Header.Get("Accept"); readable(accept) {
		r.Header.Set("Accept", accept)
	}
	if c.op.api == llm.Anthropic && r.Header.Get("Anthropic-Version") == "" {
		r.Header.Set("Anthropic-Version", "2023-06-01")
	}
	wire.Authorize(r.Header, e, c.op.api)
	return r, nil
}
