package job

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/proctor-run/proctor/internal/guarded"
	"github.com/proctor-run/proctor/internal/interrupt"
)

// interrupts are the signals that a session gets, from its first work to its end.
type interrupts struct{ first, second chan struct{} }

// interrupts begins to listen, unless the session does.
func (s *Session) interrupts() *interrupts {
	if s.signals == nil {
		i := &interrupts{first: make(chan struct{}), second: make(chan struct{})}
		stop := interrupt.Listen(s.Signals, func() { close(i.first) }, func() { close(i.second) })
		s.onClose(func(context.Context) error { stop(); return nil })
		s.signals = i
	}
	return s.signals
}

// context returns a context that ends at the first signal, after draining was called.
// stop ends it, too, and waits for a call that has begun.
func (i *interrupts) context(ctx context.Context, draining func()) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-i.first:
			draining()
			cancel()
		case <-stopped:
		}
	})
	return ctx, func() {
		close(stopped)
		wg.Wait()
		cancel()
	}
}

// Time that code of cubes has.
const (
	setupGrace      = 5 * time.Second // to return, when it was interrupted
	closeCubesLimit = 2 * time.Minute // to close what was set up
)

// apart runs code of cubes so that it can fail, and not end or hang the program: it is
// given up some time after ctx has ended, or at the second signal. late is called when
// it returns without an error after all.
func (s *Session) apart(ctx context.Context, what string, f func(context.Context) error, late func()) error {
	_, returned, err := guarded.Within(ctx, what, setupGrace, s.interrupts().second,
		func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) }, func(struct{}) { late() })
	if !returned {
		return fmt.Errorf("%s: it did not return and is left to itself: %w", what, err)
	}
	return err
}
