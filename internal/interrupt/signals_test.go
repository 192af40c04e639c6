package interrupt

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
)

// TestTheThirdSignal: it ends the process, whether or not somebody took the second.
func TestTheThirdSignal(t *testing.T) {
	t.Parallel()
	for name, hears := range map[string]bool{"still listens": true, "listens no more": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				signals, exited := make(chan os.Signal, 3), make(chan struct{})
				two := firstTwo(signals, func() { close(exited) })
				var heard []os.Signal
				stop := Listen(two, func() { heard = append(heard, os.Interrupt) }, func() { heard = append(heard, syscall.SIGTERM) })
				signals <- os.Interrupt
				synctest.Wait()
				if !hears {
					stop()
				}
				signals <- syscall.SIGTERM
				synctest.Wait()
				select {
				case <-exited:
					t.Fatal("two signals ended the process")
				default:
				}
				if hears {
					stop()
				}
				signals <- os.Interrupt
				<-exited
				if want := map[bool]int{true: 2, false: 1}[hears]; len(heard) != want {
					t.Errorf("%q were heard, want %d", heard, want)
				}
			})
		})
	}
}

// TestNobodyListens: the first signal ends a process whose command does not listen,
// and not one that listens a moment later.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		signals, exited := make(chan os.Signal), make(chan struct{})
		firstTwo(signals, func() { close(exited) })
		signals <- os.Interrupt
		<-exited
	})
	synctest.Test(t, func(t *testing.T) {
		signals, exited := make(chan os.Signal), make(chan struct{})
		two := firstTwo(signals, func() { close(exited) })
		signals <- os.Interrupt
		synctest.Wait()
		ctx, stop := Context(t.Context(), two)
		<-ctx.Done()
		stop()
		signals <- os.Interrupt
		signals <- os.Interrupt
		<-exited
	})
}
