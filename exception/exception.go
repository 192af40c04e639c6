// Package exception holds the error under which failures are recorded in
// results: the name of a Python exception and its text.
//
// Result files, retry rules and reason codes match on the name, and other
// programs read the text; so an error that may end a trial says both itself.
// Packages whose errors carry more (positions, several problems) have types of
// their own with the method of [Typed].
package exception

import (
	"cmp"
	"errors"
	"fmt"
)

// Error is a failure under the name of an exception.
type Error struct {
	// Type is the exception's class name, for example "ValueError".
	Type string
	// Message is the exception's text, without the type; may be empty.
	Message string
	// Plain is the same text in plain words, for people; empty where Message is plain.
	Plain string
	// Err is the cause, which errors.Is and errors.As look at next; may be nil.
	Err error
}

// Error returns the message alone.
func (e *Error) Error() string { return e.Message }

// PlainText returns the message in plain words.
func (e *Error) PlainText() string { return cmp.Or(e.Plain, e.Message) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorType returns the exception's class name.
func (e *Error) ErrorType() string { return e.Type }

// New returns an error with a message that is already worded.
func New(typ, message string) error { return &Error{Type: typ, Message: message} }

// Errorf words an error as fmt.Errorf does. The operand of %w is its cause.
func Errorf(typ, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Type: typ, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Typed is an error that names the exception under which it is recorded.
type Typed interface {
	error
	ErrorType() string
}

// Of returns the first error in err's chain that names an exception. Its text,
// not that of the errors around it, is the exception's message.
func Of(err error) (Typed, bool) { return errors.AsType[Typed](err) }

// TypeOf returns the name of the exception of which err, or an error it wraps,
// is one; "" for an error without a name, and for nil.
func TypeOf(err error) string {
	if typed, ok := Of(err); ok {
		return typed.ErrorType()
	}
	return ""
}
