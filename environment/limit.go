package environment

import (
	"context"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/value"
)

// Limit is a time limit of a phase. The zero value is none.
type Limit struct {
	// Sec are seconds; nil is no limit.
	Sec *float64
}

// String spells the seconds as messages do: as Python writes a float.
func (l Limit) String() string {
	if l.Sec == nil {
		return "inf"
	}
	return value.FloatRepr(*l.Sec)
}

// Passed returns the error of a limit that passed, for example "Verifier
// execution timed out after 600.0 seconds". typ is the exception's name.
func (l Limit) Passed(typ, what string) error {
	return exception.Errorf(typ, "%s timed out after %s seconds", what, l)
}

// VerifierPassed is the error of a verification that took longer than l.
func VerifierPassed(l Limit) error {
	return l.Passed(exception.VerifierTimeoutError, "Verifier execution")
}

// Duration is the limit, below zero when there is none.
func (l Limit) Duration() time.Duration {
	if l.Sec == nil {
		return -1
	}
	return harbor.Seconds(*l.Sec)
}

// Bound runs f within the limit. Its error is passed when f failed because the
// limit was over, and the cause of ctx when f failed because ctx had ended.
func (l Limit) Bound(ctx context.Context, passed error, f func(context.Context) error) error {
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if d := l.Duration(); d >= 0 {
		bounded, cancel = context.WithTimeoutCause(ctx, d, passed)
	}
	defer cancel()
	err := f(bounded)
	switch {
	case err == nil || bounded.Err() == nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return passed
}
