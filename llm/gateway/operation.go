package gateway

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// operation is what a call asks for.
type operation struct {
	api llm.API
	// path begins behind the version of the protocol. Of Gemini it lacks the model: method
	// follows that.
	path, method string
	// model is the one in the path; empty where it is in the body.
	model string
	// answers: a model answers, which costs. Others count tokens or list models.
	answers, lists bool
}

// operationOf finds the operation of a request. Whatever comes before the path of the
// protocol does not matter: programs add the version, or do not.
func operationOf(r *http.Request) (op operation, ok bool) {
	path := r.URL.Path
	if i := strings.LastIndex(path, "/models/"); i >= 0 {
		return geminiOperation(r.Method, path[i+len("/models/"):])
	}
	for _, known := range []operation{
		{api: llm.Chat, path: "/chat/completions", answers: true},
		{api: llm.Responses, path: "/responses", answers: true},
		{api: llm.Anthropic, path: "/messages", answers: true},
		{api: llm.Anthropic, path: "/messages/count_tokens"},
		{api: llm.Chat, path: "/models", lists: true},
	} {
		if !strings.HasSuffix(path, known.path) {
			continue
		}
		if known.lists && r.Header.Get("Anthropic-Version") != "" {
			known.api = llm.Anthropic
		}
		return known, r.Method == http.MethodPost != known.lists && (r.Method == http.MethodPost || r.Method == http.MethodGet)
	}
	return operation{api: llm.Chat}, false
}

func geminiOperation(method, rest string) (operation, bool) {
	at := max(0, strings.LastIndexByte(rest, ':')) // names of models may have one, too
	model, verb := rest[:at], strings.TrimPrefix(rest[at:], ":")
	op := operation{api: llm.Gemini, path: "/models/", model: model, method: ":" + verb}
	switch verb {
	case "generateContent", "streamGenerateContent":
		op.answers = true
	case "countTokens":
	default:
		return op, false
	}
	return op, method == http.MethodPost
}

// target is the path with the model, and of the query what only chooses a form that can be
// counted: others take the usage out of the answer, or are keys.
func (op operation) target(model string, query url.Values) string {
	path := op.path
	if op.method != "" {
		path += url.PathEscape(model) + op.method
	}
	switch {
	case op.api == llm.Anthropic && query.Get("beta") == "true":
		path += "?beta=true"
	case op.api == llm.Gemini && query.Get("alt") == "sse":
		path += "?alt=sse"
	}
	return path
}

// keyOf is the key of a request, wherever the protocols have it.
func keyOf(r *http.Request) string {
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key"} {
		if key := r.Header.Get(name); key != "" {
			return key
		}
	}
	if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return key
	}
	return r.URL.Query().Get("key")
}

// class are the words in which protocols call a status.
func class(api llm.API, status int) string {
	anthropic, gemini, openai := "invalid_request_error", "INVALID_ARGUMENT", "invalid_request_error"
	switch status {
	case http.StatusUnauthorized:
		anthropic, gemini = "authentication_error", "UNAUTHENTICATED"
	case http.StatusForbidden:
		anthropic, gemini = "permission_error", "PERMISSION_DENIED"
	case http.StatusNotFound:
		anthropic, gemini = "not_found_error", "NOT_FOUND"
	case http.StatusRequestEntityTooLarge:
		anthropic = "request_too_large"
	case http.StatusServiceUnavailable:
		anthropic, gemini, openai = "overloaded_error", "UNAVAILABLE", "server_error"
	case http.StatusBadGateway:
		anthropic, gemini, openai = "api_error", "UNAVAILABLE", "server_error"
	}
	switch api {
	case llm.Anthropic:
		return anthropic
	case llm.Gemini:
		return gemini
	}
	return openai
}

// problem is an error in the words of a protocol.
func problem(api llm.API, status int, message string) any {
	said := map[string]any{"message": message}
	switch api {
	case llm.Anthropic:
		said["type"] = class(api, status)
		return map[string]any{"type": "error", "error": said}
	case llm.Gemini:
		said["code"], said["status"] = status, class(api, status)
	default:
		said["type"], said["param"], said["code"] = class(api, status), nil, nil
	}
	return map[string]any{"error": said}
}

// list is the answer to what models there are.
func list(api llm.API, model string) any {
	entry := map[string]any{"id": model, "object": "model", "created": 0, "owned_by": "proctor"}
	if api == llm.Anthropic {
		entry = map[string]any{"id": model, "type": "model", "display_name": model, "created_at": "1970-01-01T00:00:00Z"}
		return map[string]any{"data": []any{entry}, "has_more": false, "first_id": model, "last_id": model}
	}
	return map[string]any{"object": "list", "data": []any{entry}}
}

// send writes an answer of the gateway's own.
func send(w http.ResponseWriter, status int, v any) {
	data, err := wire.JSON(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte("{}") // texts and numbers can always be written
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data) // the caller may have gone
}

// maxShown bounds what is quoted of a caller.
const maxShown = 200

// shown is a text of a caller as it can be quoted.
func shown(text string) string {
	if len(text) > maxShown {
		text = text[:maxShown] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
