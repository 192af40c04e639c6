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

// Within calls f on a goroutine of its own, as [Isolated] does, and waits for it until a
// grace period after ctx has ended, or until abandon is closed. returned is false when f
// has not returned by then: err is the cause of ctx's end, [context.Canceled] where ctx
// goes on, and late is called with what f gives after all, unless it is nil. Nothing
// that f writes may be read then.
func Within[T any](ctx context.Context, where string, grace time.Duration, abandon <-chan struct{},
	f func(context.Context) (T, error), late func(T),
) (value T, returned bool, err error) {
	var got, none T
	done := Isolated(where, func() (err error) {
		got, err = f(ctx)
		return err
	})
	if err, ok := wait(ctx, done, grace, abandon); ok {
		return got, true, err
	}
	go func() {
		if err := <-done; err == nil && late != nil {
			late(got)
		}
	}()
	if ctx.Err() == nil { // whoever abandons is about to end it
		return none, false, context.Canceled
	}
	return none, false, context.Cause(ctx)
}

// wait waits for the error of an isolated call; ok is false when it did not come.
func wait(ctx context.Context, done <-chan error, grace time.Duration, abandon <-chan struct{}) (err error, ok bool) {
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
