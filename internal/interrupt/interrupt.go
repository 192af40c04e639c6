// Package interrupt listens to the signals with which people end programs.
package interrupt

import (
	"context"
	"os"
	"sync"
)

// Listen calls first at the first signal and second at the second one, until stop
// is called. stop waits for a call that has begun.
func Listen(signals <-chan os.Signal, first, second func()) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, act := range []func(){first, second} {
			select {
			case <-signals:
				act()
			case <-done:
				return
			}
		}
		<-done
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// Context returns a context that ends at the first signal. stop ends it, too.
func Context(ctx context.Context, signals <-chan os.Signal) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	stopListening := Listen(signals, cancel, func() {})
	return ctx, func() {
		stopListening()
		cancel()
	}
}
