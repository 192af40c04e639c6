package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/internal/clock"
)

func TestSteadyNeverGoesBack(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 6, 9, 8, 0, 0, 0, time.UTC)
	offsets := []time.Duration{0, time.Second, -72 * time.Hour, 72 * time.Hour, -time.Hour}
	i := -1
	now := clock.Steady(func() time.Time { i++; return start.Add(offsets[i]) })
	last := start
	for range offsets[1:] {
		if got := now(); got.Before(last) {
			t.Errorf("%s after %s", got, last)
		} else {
			last = got
		}
	}
	if want := start.Add(72 * time.Hour); !last.Equal(want) {
		t.Errorf("it ends at %s, want %s", last, want)
	}
}

func TestSteadyFollowsWhatPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := clock.Steady(time.Now)
		before := now()
		time.Sleep(3 * time.Second)
		if got := now().Sub(before); got != 3*time.Second {
			t.Errorf("%s have passed, want 3s", got)
		}
	})
}

func TestNotBefore(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 6, 9, 8, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{start.Add(-72 * time.Hour), start, start.Add(time.Second)} {
		want := at
		if at.Before(start) {
			want = start
		}
		if got := clock.NotBefore(func() time.Time { return at }, start)(); !got.Equal(want) {
			t.Errorf("at %s it shows %s", at, got)
		}
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("no more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := clock.Sleep(ctx, time.Hour); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if err := clock.Sleep(t.Context(), 0); err != nil {
		t.Error(err)
	}
}
