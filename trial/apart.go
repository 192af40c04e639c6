package trial

import (
	"context"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/guarded"
)

// returnGrace is how long code of a cube or of an agent has to return when its
// context has ended.
const returnGrace = 5 * time.Second

// errAbandoned is the error of a task that does not close when the run is stopped at
// once.
var errAbandoned = exception.New(exception.RuntimeError, "it did not return when the run was stopped at once")

// apart runs code of the cube or of its agent so that it cannot do more than fail. When
// it does not return although ctx has ended, it is given up: the error is the cause of
// ctx's end, or that of a trial that is cancelled, and late is called with what it
// returns after all, where it is not nil.
func apart[T any](ctx context.Context, c *cubeRun, what string, f func(context.Context) (T, error), late func(T)) (T, error) {
	got, returned, err := guarded.Within(ctx, what, returnGrace, c.trial.r.Abandon, f, late)
	if !returned {
		c.abandoned = true
		c.trial.warn("%s did not return when its time was up and is left to itself: nothing more is asked of the task", what)
	}
	return got, err
}

// apart is the function for code that gives nothing but an error.
func (c *cubeRun) apart(ctx context.Context, what string, f func(context.Context) error) error {
	_, err := apart(ctx, c, what, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) }, nil)
	return err
}
