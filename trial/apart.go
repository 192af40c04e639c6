package trial

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
)

// returnGrace is how long code of a cube or of an agent has to return when its
// context has ended.
const returnGrace = 5 * time.Second

// isolated runs code that is not ours on a goroutine of its own, and returns a channel
// that has its error: also when it panics or ends its goroutine, as testing's FailNow
// does. what is named in the errors of both.
func isolated(what string, f func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := exception.Errorf(exception.RuntimeError, "%s ended its goroutine (runtime.Goexit) and gave no result", what)
		defer func() { done <- err }()
		err = caught(what, f)
	}()
	return done
}

// caught calls f and returns a panic in it as an error.
func caught(what string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &cube.PanicError{Where: what, Value: v, Stack: string(debug.Stack())}
		}
	}()
	return f()
}

// errAbandoned is the error of what is given up while its context has not ended.
var errAbandoned = exception.New(exception.RuntimeError, "it did not return when the run was stopped at once")

// apart runs code of the cube or of its agent so that it cannot do more than fail. When
// it does not return although ctx has ended, it is given up: the error is the cause of
// ctx's end, and late is called with what it returns after all, where it is not nil.
func apart[T any](ctx context.Context, c *cubeRun, what string, f func(context.Context) (T, error), late func(T)) (T, error) {
	var got, none T
	done := isolated(what, func() (err error) {
		got, err = f(ctx)
		return err
	})
	if err, ok := wait(ctx, done, c.trial.r.Abandon); ok {
		return got, err
	}
	c.abandoned = true
	c.trial.warn("%s did not return when its time was up and is left to itself: nothing more is asked of the task", what)
	go func() {
		if err := <-done; err == nil && late != nil {
			late(got)
		}
	}()
	if ctx.Err() == nil {
		return none, errAbandoned
	}
	return none, context.Cause(ctx)
}

// wait waits for an error until a while after ctx has ended, or until abandon is
// closed.
func wait(ctx context.Context, done <-chan error, abandon <-chan struct{}) (err error, ok bool) {
	select {
	case err := <-done:
		return err, true
	case <-abandon:
		return nil, false
	case <-ctx.Done():
	}
	grace := time.NewTimer(returnGrace)
	defer grace.Stop()
	select {
	case err := <-done:
		return err, true
	case <-abandon:
	case <-grace.C:
	}
	return nil, false
}

// apart is the function for code that gives nothing but an error.
func (c *cubeRun) apart(ctx context.Context, what string, f func(context.Context) error) error {
	_, err := apart(ctx, c, what, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) }, nil)
	return err
}
