package cube

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// closeGrace is how long Close waits for whoever is inside the problem or the
// tool, after interrupting it. Then it closes the tool and stops the container
// all the same, which ends what does not listen to a context.
const closeGrace = 5 * time.Second

// turns lets one caller at a time into a task.
type turns struct {
	turn  chan struct{} // full while somebody is inside
	ended chan struct{} // closed by Close

	mu        sync.Mutex // guards what follows
	closed    bool
	interrupt context.CancelCauseFunc // of whoever is inside
	broken    error                   // after a panic
}

func newTurns() turns {
	return turns{turn: make(chan struct{}, 1), ended: make(chan struct{})}
}

// enter waits for the caller's turn, which ends with leave. The context that it
// returns ends with ctx and when the task is closed.
func (t *turns) enter(ctx context.Context) (context.Context, error) {
	if err := t.refusal(ctx); err != nil {
		return nil, err
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.ended:
		return nil, t.refusal(ctx)
	}
	inner, cancel := context.WithCancelCause(ctx)
	t.mu.Lock()
	t.interrupt = cancel
	t.mu.Unlock()
	if err := t.refusal(ctx); err != nil {
		t.leave()
		return nil, err
	}
	return inner, nil
}

func (t *turns) leave() {
	t.mu.Lock()
	t.interrupt(nil)
	t.interrupt = nil
	t.mu.Unlock()
	<-t.turn
}

// end lets nobody in any more and interrupts whoever is inside.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		close(t.ended)
	}
	if t.interrupt != nil {
		t.interrupt(ErrClosed)
	}
}

// refusal is why a caller may not come in.
func (t *turns) refusal(ctx context.Context) error {
	if err := t.shutErr(); err != nil {
		return err
	}
	return ctx.Err()
}

// shutErr is the panic that broke the task, or that it was closed.
func (t *turns) shutErr() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == nil && t.closed {
		return ErrClosed
	}
	return t.broken
}

func (t *turns) brokenErr() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}

// hook calls code of the cube, unless the task was closed meanwhile. What was
// interrupted by Close says so.
func (t *Task) hook(ctx context.Context, name string, f func() error) error {
	if err := t.shutErr(); err != nil {
		return err
	}
	err := t.call(ctx, name, f)
	if err != nil && t.shutErr() == ErrClosed {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return err
}

// call calls code of the cube. After a panic in it nothing is known about the
// task's state: it is closed at once and refuses to go on.
func (t *Task) call(ctx context.Context, name string, f func() error) error {
	if err := t.brokenErr(); err != nil {
		return err
	}
	err := guarded(name, f)
	if _, panicked := err.(*PanicError); panicked {
		return t.breakDown(ctx, err)
	}
	return err
}

// breakDown closes the task from inside, where the caller has its turn.
func (t *Task) breakDown(ctx context.Context, cause error) error {
	t.mu.Lock()
	t.broken = RuntimeErrorf("the task was closed after a %w", cause)
	t.mu.Unlock()
	t.end()
	ctx, cancel := detached(ctx)
	defer cancel()
	return joinCleanup(cause, t.shut(ctx))
}

// Close releases everything: it ends what runs in the task, calls the problem's
// own Close, closes the tool and stops the container. Each happens whatever
// became of the others, and although ctx may have ended. A second Close only
// calls the problem's and the tool's again.
func (t *Task) Close(ctx context.Context) error {
	t.end()
	ctx, cancel := detached(ctx)
	defer cancel()
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-time.After(closeGrace):
	}
	return t.shut(ctx)
}

func (t *Task) shut(ctx context.Context) error {
	var own error
	if c, ok := t.problem.(Closer); ok {
		own = guarded("Close", func() error { return c.Close(ctx) })
	}
	return joined(own, t.free(ctx))
}

// free closes the tool and stops the container, and forgets the container once
// it is stopped.
func (t *Task) free(ctx context.Context) error {
	t.release.Lock()
	defer t.release.Unlock()
	var errs []error
	if t.c.tool != nil {
		errs = append(errs, guarded("tool Close", func() error { return t.c.tool.Close(ctx) }))
	}
	if t.freed {
		return joined(errs...)
	}
	var err error
	switch {
	case t.c.handle != nil:
		err = guarded("handle Close", func() error { return t.c.handle.Close(ctx) })
	case t.c.container != nil:
		err = guarded("container Stop", func() error { return t.c.container.Stop(ctx) })
	}
	t.freed = err == nil
	if err != nil {
		err = fmt.Errorf("stopping the container of task %q: %w", t.ID(), err)
	}
	return joined(append(errs, err)...)
}
