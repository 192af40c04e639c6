// Package guarded calls code that is not ours so that it can fail, and do no more: a
// panic, the end of its goroutine and not returning are errors of the call.
package guarded

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/proctor-run/proctor/exception"
)

// Call calls f and returns a panic in it as a [*exception.PanicError]. A goroutine that f ends is
// the caller's own; see [Isolated].
func Call(where string, f func() error) (err error) {
	defer Recovered(where, &err)
	return f()
}

// Recovered turns a panic of the surrounding function into its error. It is deferred.
func Recovered(where string, err *error) {
	if v := recover(); v != nil {
		*err = &exception.PanicError{Where: where, Value: v, Stack: string(debug.Stack())}
	}
}

// Isolated calls f on a goroutine of its own and returns a channel that gets its error,
// also when f panics or ends the goroutine, as FailNow of package testing does.
func Isolated(where string, f func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		var err error = &exception.ExitError{Where: where}
		defer func() { done <- err }()
		err = Call(where, f)
	}()
	return done
}

// Wait waits for the error of an isolated call until a grace period after ctx has
// ended, or until abandon is closed. ok is false when the call has not returned by
// then; whoever made it lets go of all that it may still use.
func Wait(ctx context.Context, done <-chan error, grace time.Duration, abandon <-chan struct{}) (err error, ok bool) {
	select {
	case err := <-done:
		return err, true
	case <-abandon:
		return nil, false
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return err, true
	case <-abandon:
	case <-timer.C:
	}
	return nil, false
}
