package interrupt_test

import (
	"context"
	"os"
	"testing"

	"github.com/proctor-run/proctor/internal/interrupt"
)

func TestListen(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal)
	first, second := make(chan struct{}), make(chan struct{})
	stop := interrupt.Listen(signals, func() { close(first) }, func() { close(second) })
	signals <- os.Interrupt
	<-first
	select {
	case <-second:
		t.Fatal("the first signal counts twice")
	default:
	}
	signals <- os.Interrupt
	<-second
	stop()
	select {
	case signals <- os.Interrupt:
		t.Error("somebody still listens")
	default:
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal)
	ctx, stop := interrupt.Context(t.Context(), signals)
	signals <- os.Interrupt
	<-ctx.Done()
	if context.Cause(ctx) == nil {
		t.Error("the context has no cause")
	}
	stop()
	ctx, stop = interrupt.Context(t.Context(), nil)
	if ctx.Err() != nil {
		t.Error("a context ended without a signal")
	}
	stop()
	if ctx.Err() == nil {
		t.Error("stop ends no context")
	}
}
