package cube

import (
	"context"
	"errors"
	"runtime/debug"
	"time"
)

// cleanupLimit bounds each release that runs although the caller's context has
// ended.
const cleanupLimit = 2 * time.Minute

// recovered turns a panic of the surrounding function into its error. It is
// deferred.
func recovered(where string, err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Where: where, Value: v, Stack: string(debug.Stack())}
	}
}

// guarded calls f and returns a panic in it as an error.
func guarded(where string, f func() error) (err error) {
	defer recovered(where, &err)
	return f()
}

// detached returns a context for cleaning up: it has the values of ctx but not
// its end, and a bound of its own.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
}

// joinCleanup keeps err as it is, so that callers can match on it, unless the
// cleaning up after it went wrong too.
func joinCleanup(err, cleanup error) error {
	if cleanup == nil {
		return err
	}
	return errors.Join(err, cleanup)
}

func closeTools(ctx context.Context, tools []Tool) error {
	var errs []error
	for _, t := range tools {
		errs = append(errs, guarded("tool Close", func() error { return t.Close(ctx) }))
	}
	return errors.Join(errs...)
}
