// Package turns lets one caller at a time into something that can be closed
// while a caller is inside.
package turns

import (
	"context"
	"sync"
	"time"
)

// Turns are the turns of the callers of one thing. Make them with [New].
type Turns struct {
	turn   chan struct{} // full while somebody is inside
	ended  chan struct{} // closed by End
	reason error         // of End

	mu        sync.Mutex // guards what follows
	closed    bool
	interrupt context.CancelCauseFunc // of whoever is inside
	broken    error
}

// New returns turns that are refused with the error reason after End.
func New(reason error) *Turns {
	return &Turns{turn: make(chan struct{}, 1), ended: make(chan struct{}), reason: reason}
}

// Enter waits for the caller's turn, which ends with Leave. The context that it
// returns ends with ctx and with End. The error is that of ctx, or of Err.
func (t *Turns) Enter(ctx context.Context) (context.Context, error) {
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
		t.Leave()
		return nil, err
	}
	return inner, nil
}

// Leave ends the turn that Enter began.
func (t *Turns) Leave() {
	t.mu.Lock()
	t.interrupt(nil)
	t.interrupt = nil
	t.mu.Unlock()
	<-t.turn
}

// TryHold takes a turn if nobody is inside, also after End and whatever is
// broken, and returns what ends it; ok is false where somebody is.
func (t *Turns) TryHold() (release func(), ok bool) {
	select {
	case t.turn <- struct{}{}:
		return func() { <-t.turn }, true
	default:
		return nil, false
	}
}

// HoldWithin waits for a turn, also after End and whatever is broken, and
// returns what ends it. It does without the turn when that has not come in time.
func (t *Turns) HoldWithin(limit time.Duration) (release func()) {
	select {
	case t.turn <- struct{}{}:
		return func() { <-t.turn }
	case <-time.After(limit):
		return func() {}
	}
}

// End lets no caller in any more and interrupts the one inside.
func (t *Turns) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		close(t.ended)
	}
	if t.interrupt != nil {
		t.interrupt(t.reason)
	}
}

// Break is End for the given reason, which Err and Broken then return.
func (t *Turns) Break(reason error) {
	t.mu.Lock()
	t.broken = reason
	t.mu.Unlock()
	t.End()
}

// Err returns why callers are refused: the reason of Break, else that of End.
func (t *Turns) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == nil && t.closed {
		return t.reason
	}
	return t.broken
}

// Broken returns the reason of Break.
func (t *Turns) Broken() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}

// refusal is why a caller with the context may not come in.
func (t *Turns) refusal(ctx context.Context) error {
	if err := t.Err(); err != nil {
		return err
	}
	return ctx.Err()
}
