// Package interrupt listens to the signals with which people end programs.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Signals returns the first two signals with which people end this process, for
// [Listen] and [Context]. exit is called at the first one if nobody listens, and else
// at the third: whatever does not listen or does not return has an end.
//
// A hangup is such a signal, too, for the terminal it came from has gone; a process
// that was started to survive it (nohup) ignores it still.
func Signals(exit func()) <-chan os.Signal {
	ending := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ending = append(ending, syscall.SIGHUP)
	}
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, ending...)
	return firstTwo(signals, exit)
}

// patience is how long a signal waits for somebody who is about to listen, as between
// two steps of a command: not noticed by people, and long for a goroutine that is
// ready to run.
const patience = 100 * time.Millisecond

func firstTwo(signals <-chan os.Signal, exit func()) <-chan os.Signal {
	two := make(chan os.Signal) // a send has somebody who listens
	go func() {
		defer exit()
		first := <-signals
		select {
		case two <- first:
		case <-time.After(patience):
			return
		}
		// What ends in order has its time, also where it does not listen any more.
		second := <-signals
		select {
		case two <- second:
			<-signals
		case <-signals:
		}
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

// SurviveClosedPipes lets writes to a closed standard output or error fail from now on,
// instead of ending the process.
func SurviveClosedPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
