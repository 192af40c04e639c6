package guest_test

import (
	"io"
	"os"
	"testing"

	"github.com/proctor-run/proctor/sandbox/egress/tunnel"
	"github.com/proctor-run/proctor/sandbox/guest"
)

func TestTheRelayTakesThePortOfItsArgument(t *testing.T) {
	t.Parallel()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = r.Close(), w.Close() })
		return r, w
	}
	const port = "61099"
	inR, inW := pipe()
	outR, outW := pipe()
	code := make(chan int, 1)
	go func() {
		code <- guest.Program([]string{guest.RelayMode, port}, inR, outW, io.Discard, "test")
	}()
	if got, err := tunnel.ReadHello(outR); err != nil || got != 61099 {
		t.Errorf("it listens on port %d, %v", got, err)
	}
	_ = inW.Close()
	if got := <-code; got != 0 {
		t.Errorf("it ended with code %d", got)
	}
}
