package image

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestFlightWaitsForItsEnd: who gives up as the last one finds that the work
// has ended, with its cleaning up; who gives up before does not wait.
func TestFlightWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFlight[int]()
		over := false
		work := func(ctx context.Context, _ func(string)) (int, error) {
			<-ctx.Done()
			time.Sleep(time.Hour) // cleaning up
			over = true
			return 0, context.Cause(ctx)
		}
		mine := errors.New("mine")
		var leave [2]context.CancelCauseFunc
		var done [2]chan error
		for i := range done {
			ctx, cancel := context.WithCancelCause(t.Context())
			leave[i], done[i] = cancel, make(chan error, 1)
			go func() {
				_, err := f.do(ctx, "key", nil, work)
				done[i] <- err
			}()
		}
		synctest.Wait()
		for i, want := range []bool{false, true} {
			leave[i](mine)
			if err := <-done[i]; !errors.Is(err, mine) {
				t.Errorf("%d got %v, want its own cause", i, err)
			}
			if over != want {
				t.Errorf("when %d has left the work is over: %t, want %t", i, over, want)
			}
		}
	})
}
