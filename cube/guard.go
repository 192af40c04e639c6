package cube

import (
	"context"
	"errors"
	"time"

	"github.com/proctor-run/proctor/internal/guarded"
)

// cleanupLimit bounds each release that runs although the caller's context has
// ended.
const cleanupLimit = 2 * time.Minute

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
		errs = append(errs, guarded.Call("tool Close", func() error { return t.Close(ctx) }))
	}
	return errors.Join(errs...)
}
