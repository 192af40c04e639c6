package interrupt

import (
	"os"
	"testing"
)

// TestTheThirdSignal: it ends the process, also when nobody took the first two.
func TestTheThirdSignal(t *testing.T) {
	t.Parallel()
	signals, exited := make(chan os.Signal), make(chan struct{})
	two := firstTwo(signals, func() { close(exited) })
	signals <- os.Interrupt
	signals <- os.Interrupt
	select {
	case <-exited:
		t.Fatal("two signals ended the process")
	default:
	}
	signals <- os.Interrupt
	<-exited
	if len(two) != 2 {
		t.Errorf("%d signals were handed on, want two", len(two))
	}
}
