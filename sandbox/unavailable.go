package sandbox

import (
	"errors"
	"fmt"
	"strings"
)

// UnavailableError is an ErrUnavailable that tells why from what helps.
type UnavailableError struct {
	Err error  // what is missing
	Fix string // what to do about it
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("%v: %v (%s)", ErrUnavailable, e.Err, e.Fix)
}

// Unwrap makes errors.Is find ErrUnavailable.
func (e *UnavailableError) Unwrap() []error { return []error{ErrUnavailable, e.Err} }

// Hint says what to do about it.
func (e *UnavailableError) Hint() string { return e.Fix }

// Why says in one line each why a backend cannot be used and what to do about it; fix
// is empty where the error does not know.
func Why(err error) (reason, fix string) {
	if e, ok := errors.AsType[*UnavailableError](err); ok {
		return e.Err.Error(), e.Fix
	}
	return strings.TrimPrefix(err.Error(), ErrUnavailable.Error()+": "), ""
}
