package llmtest

import (
	"context"
	"net/http"
	"strings"

	"github.com/proctor-run/proctor/llm"
)

// FaultKind is what goes wrong.
type FaultKind string

// The faults. Those of a provider are told in the words of the protocol.
const (
	Overload  FaultKind = "overload"  // status 529 or 503
	RateLimit FaultKind = "rate"      // status 429
	Quota     FaultKind = "quota"     // status 429: the account has nothing left
	Auth      FaultKind = "auth"      // status 401
	Unknown   FaultKind = "unknown"   // status 404: no such model
	Context   FaultKind = "context"   // the conversation is too long
	Refused   FaultKind = "refused"   // the provider's filter
	Malformed FaultKind = "malformed" // status 200, and no JSON
	Empty     FaultKind = "empty"     // status 200, and no answer in it
	Cut       FaultKind = "cut"       // the connection ends in the middle of the answer
	Wait      FaultKind = "wait"      // the answer comes when Release is closed, or never
)

// Fault is an answer that is none.
type Fault struct {
	// Kind may be empty: then there is Status, with Message.
	Kind       FaultKind `json:"kind,omitempty"`
	Status     int       `json:"status,omitempty"`
	RetryAfter string    `json:"retry_after,omitempty"`
	// Message replaces the text of the kind.
	Message string `json:"message,omitempty"`
	// Release ends a wait; nil for none.
	Release <-chan struct{} `json:"-"`
}

// wait waits if the fault is a wait, and tells whether it ended before the request did.
func (f *Fault) wait(ctx context.Context) bool {
	if f == nil || f.Kind != Wait {
		return true
	}
	select {
	case <-f.Release:
		return true
	case <-ctx.Done():
		return false
	}
}

// words are how a protocol tells of a fault.
type words struct {
	status               int
	class, code, message string
}

// openaiWords are those of both protocols of OpenAI.
func openaiWords(kind FaultKind) words {
	switch kind {
	case Overload:
		return words{503, "server_error", "", "The server is overloaded or not ready yet."}
	case RateLimit:
		return words{429, "requests", "rate_limit_exceeded", "Rate limit reached for requests."}
	case Quota:
		return words{429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."}
	case Auth:
		return words{401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."}
	case Unknown:
		return words{404, "invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."}
	case Context:
		return words{400, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is 8192 tokens. Please reduce the length of the messages."}
	case Refused:
		return words{400, "invalid_request_error", "content_policy_violation", "Your request was rejected as a result of our safety system."}
	}
	return words{}
}

func anthropicWords(kind FaultKind) words {
	switch kind {
	case Overload:
		return words{529, "overloaded_error", "", "Overloaded"}
	case RateLimit:
		return words{429, "rate_limit_error", "", "This request would exceed the rate limit for your organization."}
	case Quota:
		return words{400, "invalid_request_error", "", "Your credit balance is too low to access the API."}
	case Auth:
		return words{401, "authentication_error", "", "invalid x-api-key"}
	case Unknown:
		return words{404, "not_found_error", "", "model: not found"}
	case Context:
		return words{400, "invalid_request_error", "", "prompt is too long: 210000 tokens > 200000 maximum"}
	case Refused:
		return words{400, "invalid_request_error", "", "Output blocked by content_filter"}
	}
	return words{}
}

func geminiWords(kind FaultKind) words {
	switch kind {
	case Overload:
		return words{503, "UNAVAILABLE", "", "The model is overloaded. Please try again later."}
	case RateLimit:
		return words{429, "RESOURCE_EXHAUSTED", "", "Resource has been exhausted."}
	case Quota:
		return words{429, "RESOURCE_EXHAUSTED", "", "You exceeded your current quota, please check your plan and billing details."}
	case Auth:
		return words{400, "INVALID_ARGUMENT", "API_KEY_INVALID", "API key not valid. Please pass a valid API key."}
	case Unknown:
		return words{404, "NOT_FOUND", "", "The model is not found for this version of the API."}
	case Context:
		return words{400, "INVALID_ARGUMENT", "", "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."}
	}
	return words{}
}

// of are the words of a fault: those of its kind, changed by what it says itself.
func (f *Fault) of(kind func(FaultKind) words) words {
	w := kind(f.Kind)
	if f.Status != 0 {
		w.status = f.Status
	}
	if w.status == 0 {
		w.status = http.StatusInternalServerError
	}
	if f.Message != "" {
		w.message = f.Message
	}
	if w.message == "" {
		w.message = "the script says so: " + http.StatusText(w.status)
	}
	if w.class == "" {
		w.class = "api_error"
	}
	return w
}

// special answers the faults that are no error of the protocol, and tells whether f is one.
func (f *Fault) special(w http.ResponseWriter, empty string) bool {
	body := ""
	switch f.Kind {
	case Malformed:
		body = `{"id": "x", "choices": [{"message`
	case Empty:
		body = empty
	default:
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	//nolint:errcheck // the client may have gone
	w.Write([]byte(body))
	return true
}

func sendStatus(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	send(w, v)
}

// dialect is a protocol.
type dialect interface {
	api() llm.API
	// parse reads the body of a request.
	parse(req *Request) error
	// whole and events are an answer, in one piece and as a stream.
	whole(req *Request, a *full) any
	events(req *Request, a *full) []event
	fail(w http.ResponseWriter, f *Fault)
}

// dialectOf finds the protocol of a path; nil for none.
func dialectOf(path string) dialect {
	switch {
	case strings.HasSuffix(path, "/chat/completions"), strings.HasSuffix(path, "/models"):
		return chat{}
	case strings.HasSuffix(path, "/responses"):
		return responses{}
	case strings.HasSuffix(path, "/messages"), strings.HasSuffix(path, "/messages/count_tokens"):
		return anthropic{}
	}
	_, method, _ := strings.Cut(path, "/models/")
	for _, m := range []string{":generateContent", ":streamGenerateContent", ":countTokens"} {
		if strings.HasSuffix(method, m) {
			return gemini{}
		}
	}
	return nil
}
