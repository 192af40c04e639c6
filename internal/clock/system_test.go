package clock_test

import (
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/clock"
)

func TestOr(t *testing.T) {
	t.Parallel()
	fixed := time.Unix(1, 0)
	if got := clock.Or(func() time.Time { return fixed })(); !got.Equal(fixed) {
		t.Errorf("got %v, want the given clock's %v", got, fixed)
	}
	before := time.Now()
	if got := clock.Or(nil)(); got.Before(before) || got.After(time.Now()) {
		t.Errorf("got %v, want the time of now", got)
	}
}
