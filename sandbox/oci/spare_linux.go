package oci

import (
	"context"
	"fmt"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

// spareIdle is how long a spare life waits for a Reset. It takes as much memory
// as an idle sandbox.
const spareIdle = 5 * time.Minute

// spare is a life of a sandbox that is started ahead of the Reset that needs it.
// Its goroutine owns the life until it is taken.
type spare struct {
	ready chan *Sandbox // hands the life over
	done  chan struct{} // closed when nothing of it is left here
	err   error         // of its removal, once done is closed
}

// keepSpare starts a life that waits until it is taken, for spareIdle, or until
// ctx ends.
func (b *Backend) keepSpare(ctx context.Context, spec sandbox.Spec, from *base) *spare {
	sp := &spare{ready: make(chan *Sandbox), done: make(chan struct{})}
	go func() {
		defer close(sp.done)
		s, err := b.start(ctx, spec, from)
		if err != nil {
			if ctx.Err() == nil {
				b.opts.Log.Warn("the next reset will take longer", "cause", err)
			}
			return // the Reset finds out by itself
		}
		idle := time.NewTimer(spareIdle)
		defer idle.Stop()
		select {
		case sp.ready <- s:
			return
		case <-idle.C:
		case <-ctx.Done():
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyLimit)
		defer cancel()
		sp.err = s.Destroy(end)
	}()
	return sp
}

// take returns the life, or nil when there is none.
func (sp *spare) take(ctx context.Context) *Sandbox {
	select {
	case s := <-sp.ready:
		return s
	case <-sp.done:
	case <-ctx.Done():
	}
	return nil
}

// wait returns when the life is removed; its context has ended.
func (sp *spare) wait(ctx context.Context) error {
	select {
	case <-sp.done:
		return sp.err
	case <-ctx.Done():
		return fmt.Errorf("removing a spare: %w", context.Cause(ctx))
	}
}
