// Package interrupt listens to the signals with which people end programs.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Signals returns the first two signals with which people end this process. At the
// third, exit is called: whatever does not listen or does not return has an end.
func Signals(exit func()) <-chan os.Signal {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return firstTwo(signals, exit)
}

func firstTwo(signals <-chan os.Signal, exit func()) <-chan os.Signal {
	two := make(chan os.Signal, 2)
	go func() {
		two <- <-signals
		two <- <-signals
		<-signals
		exit()
	}()
	return two
}

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
