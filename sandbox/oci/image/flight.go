package image

import (
	"context"
	"fmt"
	"sync"
)

// flight lets concurrent callers share one piece of work by key. The work ends
// when it is done, when all who wait for it have left, or on close.
type flight[T any] struct {
	mu     sync.Mutex
	calls  map[string]*call[T] // guarded by mu
	closed bool                // guarded by mu
	wg     sync.WaitGroup      // the goroutines that work
}

type call[T any] struct {
	done    chan struct{}
	value   T
	err     error
	cancel  context.CancelCauseFunc
	waiting int // guarded by flight.mu
	news    broadcast
}

func newFlight[T any]() *flight[T] { return &flight[T]{calls: map[string]*call[T]{}} }

// do runs work, or joins the run for the same key. listen, when not nil, hears
// what work says until do returns. Who leaves as the last one waits until the
// work, which is cancelled with that, has ended and has cleaned up.
func (f *flight[T]) do(ctx context.Context, key string, listen func(string),
	work func(ctx context.Context, say func(string)) (T, error),
) (T, error) {
	var zero T
	c, err := f.join(ctx, key, work)
	if err != nil {
		return zero, err
	}
	leave := c.news.add(listen)
	defer leave()
	select {
	case <-c.done:
		f.leave(key, c)
		return c.value, c.err
	case <-ctx.Done():
		if f.leave(key, c) {
			<-c.done
		}
		return zero, context.Cause(ctx)
	}
}

func (f *flight[T]) join(ctx context.Context, key string,
	work func(ctx context.Context, say func(string)) (T, error),
) (*call[T], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	if c := f.calls[key]; c != nil {
		c.waiting++
		return c, nil
	}
	work2, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &call[T]{done: make(chan struct{}), cancel: cancel, waiting: 1}
	f.calls[key] = c
	f.wg.Go(func() {
		c.value, c.err = work(work2, c.news.say)
		f.forget(key, c)
		close(c.done)
		cancel(nil)
	})
	return c, nil
}

// leave reports whether nobody waits for the work any more.
func (f *flight[T]) leave(key string, c *call[T]) (last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.waiting--
	if c.waiting > 0 {
		return false
	}
	if f.calls[key] == c {
		delete(f.calls, key)
	}
	c.cancel(fmt.Errorf("nobody waits for it any more: %w", context.Canceled))
	return true
}

func (f *flight[T]) forget(key string, c *call[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[key] == c {
		delete(f.calls, key)
	}
}

// close cancels all work and waits for its end.
func (f *flight[T]) close() {
	f.mu.Lock()
	f.closed = true
	for _, c := range f.calls {
		c.cancel(errClosed)
	}
	f.mu.Unlock()
	f.wg.Wait()
}

// broadcast hands messages to listeners, one at a time.
type broadcast struct {
	mu        sync.Mutex
	last      string
	listeners map[int]func(string)
	next      int
}

// add registers a listener, tells it the last message, and returns how to
// remove it; after that it is not called any more.
func (b *broadcast) add(listen func(string)) (remove func()) {
	if listen == nil {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listeners == nil {
		b.listeners = map[int]func(string){}
	}
	id := b.next
	b.next++
	b.listeners[id] = listen
	if b.last != "" {
		listen(b.last)
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.listeners, id)
	}
}

func (b *broadcast) say(message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = message
	for _, listen := range b.listeners {
		listen(message)
	}
}
