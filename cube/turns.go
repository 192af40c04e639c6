package cube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/proctor-run/proctor/internal/guarded"
)

// closeGrace is how long Close waits for whoever is inside the problem or the
// tool, after interrupting it. Then it closes the tool and stops the container
// all the same, which ends what does not listen to a context.
const closeGrace = 5 * time.Second

// hook calls code of the cube, unless the task was closed meanwhile. What was
// interrupted by Close says so.
func (t *Task) hook(ctx context.Context, name string, f func() error) error {
	if err := t.turns.Err(); err != nil {
		return err
	}
	err := t.call(ctx, name, f)
	if err != nil && errors.Is(t.turns.Err(), ErrClosed) {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return err
}

// call calls code of the cube. After a panic in it, or an end of its goroutine,
// nothing is known about the task's state: it is closed at once and refuses to go
// on.
func (t *Task) call(ctx context.Context, name string, f func() error) error {
	if err := t.turns.Broken(); err != nil {
		return err
	}
	returned := false
	defer func() {
		if !returned { // nobody is there any more whom to tell
			_ = t.breakDown(ctx, &ExitError{Where: name})
		}
	}()
	err := guarded.Call(name, f)
	returned = true
	if _, panicked := err.(*PanicError); panicked { //nolint:errorlint // one inside an error is the panic of something else
		return t.breakDown(ctx, err)
	}
	return err
}

// breakDown closes the task from inside, where the caller has its turn.
func (t *Task) breakDown(ctx context.Context, cause error) error {
	t.turns.Break(closedAfter(cause))
	ctx, cancel := detached(ctx)
	defer cancel()
	return joinCleanup(cause, t.shut(ctx))
}

// closedAfter is why a task is refused that a hook left in a state nobody knows.
func closedAfter(cause error) error {
	if _, ended := cause.(*ExitError); ended { //nolint:errorlint // the cause itself
		return RuntimeErrorf("the task was closed: %w", cause)
	}
	return RuntimeErrorf("the task was closed after a %w", cause)
}

// Close releases everything: it ends what runs in the task, calls the problem's
// own Close, closes the tool and stops the container. Each happens whatever
// became of the others, and although ctx may have ended. A second Close only
// calls the problem's and the tool's again.
func (t *Task) Close(ctx context.Context) error {
	t.turns.End()
	ctx, cancel := detached(ctx)
	defer cancel()
	defer t.turns.HoldWithin(closeGrace)()
	return t.shut(ctx)
}

func (t *Task) shut(ctx context.Context) (err error) {
	defer func() { err = joined(err, t.free(ctx)) }() // also when the hook ends its goroutine
	if c, ok := t.problem.(Closer); ok {
		return guarded.Call("Close", func() error { return c.Close(ctx) })
	}
	return nil
}

// free closes the tool and stops the container, and forgets the container once
// it is stopped.
func (t *Task) free(ctx context.Context) (err error) {
	t.release.Lock()
	defer t.release.Unlock()
	defer func() { err = joined(err, t.stopContainer(ctx)) }() // also when the tool ends its goroutine
	if t.c.tool == nil {
		return nil
	}
	return guarded.Call("tool Close", func() error { return t.c.tool.Close(ctx) })
}

func (t *Task) stopContainer(ctx context.Context) error {
	if t.freed {
		return nil
	}
	var err error
	switch {
	case t.c.handle != nil:
		err = guarded.Call("handle Close", func() error { return t.c.handle.Close(ctx) })
	case t.c.container != nil:
		err = guarded.Call("container Stop", func() error { return t.c.container.Stop(ctx) })
	}
	t.freed = err == nil
	if err != nil {
		err = fmt.Errorf("stopping the container of task %q: %w", t.ID(), err)
	}
	return err
}
