package turns_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/cube/internal/turns"
)

var errEnded = errors.New("ended")

func TestOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := turns.New(errEnded)
		if _, err := tr.Enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := make(chan error, 1)
		go func() {
			_, err := tr.Enter(context.Background())
			second <- err
		}()
		synctest.Wait()
		select {
		case err := <-second:
			t.Fatalf("two are inside: %v", err)
		default:
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := tr.Enter(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waited past the context: %v", err)
		}
		tr.Leave()
		if err := <-second; err != nil {
			t.Error(err)
		}
		tr.Leave()
	})
}

func TestEndInterruptsAndRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := turns.New(errEnded)
		inside, err := tr.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 1)
		go func() {
			_, err := tr.Enter(context.Background())
			waiting <- err
		}()
		synctest.Wait()
		tr.End()
		tr.End()
		if err := <-waiting; !errors.Is(err, errEnded) {
			t.Errorf("the caller that waits got %v", err)
		}
		<-inside.Done()
		if cause := context.Cause(inside); !errors.Is(cause, errEnded) {
			t.Errorf("interrupted by %v", cause)
		}
		start := time.Now()
		if _, ok := tr.TryHold(); ok {
			t.Error("two are inside")
		}
		tr.HoldWithin(5 * time.Second)() // the one inside does not leave
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("waited %v", waited)
		}
		tr.Leave()
		if release, ok := tr.TryHold(); !ok {
			t.Error("the turn is free, but not to be had")
		} else {
			release()
		}
		tr.HoldWithin(time.Second)()
		if _, err := tr.Enter(t.Context()); !errors.Is(err, errEnded) {
			t.Errorf("entered after the end: %v", err)
		}
	})
}

func TestBreak(t *testing.T) {
	t.Parallel()
	tr, broken := turns.New(errEnded), errors.New("broken")
	if tr.Err() != nil || tr.Broken() != nil {
		t.Fatal("new turns are refused")
	}
	tr.End()
	if !errors.Is(tr.Err(), errEnded) || tr.Broken() != nil {
		t.Errorf("after End: %v, %v", tr.Err(), tr.Broken())
	}
	tr.Break(broken)
	if !errors.Is(tr.Err(), broken) || !errors.Is(tr.Broken(), broken) {
		t.Errorf("after Break: %v, %v", tr.Err(), tr.Broken())
	}
}
