package llm

import (
	"errors"
	"fmt"
	"time"
)

// Kind is what went wrong with a call.
type Kind string

// The kinds. Those that waiting may mend are retried, see [Client].
const (
	RateLimited   Kind = "rate limit"       // too many requests or tokens; retried
	ContextLength Kind = "context length"   // the conversation is too long for the model
	Auth          Kind = "authentication"   // no key, or one that the provider refused
	NotFound      Kind = "model not found"  // no such model or address
	Refused       Kind = "content filter"   // the provider would not answer to this
	BadRequest    Kind = "bad request"      // anything else that the provider refuses
	Quota         Kind = "quota"            // the account has nothing left; waiting does not help
	Transient     Kind = "provider failure" // connections, 5xx, answers that cannot be read; retried
)

// Error is the failure of a call.
type Error struct {
	Kind Kind
	// Model is the name as it was configured.
	Model string
	// Status is the HTTP status, 0 without one.
	Status int
	// RetryAfter is how long the provider asks to wait; 0 where it does not.
	RetryAfter time.Duration
	// Message is the provider's text, cut to a length that can be shown, without any
	// key in it.
	Message string
	// Err is the cause; may be nil.
	Err error
}

// KindOf is the kind of the failure of a call that err is or wraps; empty for none.
func KindOf(err error) Kind {
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.Kind
	}
	return ""
}

func (e *Error) Error() string {
	status := ""
	if e.Status != 0 {
		status = fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	return fmt.Sprintf("model %s: %s%s: %s", e.Model, e.Kind, status, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorType is the name under which results record the error: the reference's, which are
// those of its library where it has none of its own (Harbor's agents, section 5.3).
func (e *Error) ErrorType() string {
	switch e.Kind {
	case RateLimited, Quota:
		return "RateLimitError"
	case ContextLength:
		return "ContextLengthExceededError"
	case Auth:
		return "AuthenticationError"
	case NotFound:
		return "NotFoundError"
	case Refused:
		return "ContentPolicyViolationError"
	case BadRequest:
		return "BadRequestError"
	}
	if e.Status < 400 { // nothing came, or nothing that could be read
		return "APIConnectionError"
	}
	return "InternalServerError"
}
