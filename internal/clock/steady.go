package clock

import (
	"sync"
	"time"
)

// Steady returns a clock for the beginning and end of things: it starts at now
// and from then on only follows what has passed, so that the difference of two
// of its times is not changed by a system clock that is set, and never
// negative. It may be read concurrently.
func Steady(now func() time.Time) func() time.Time {
	start := now()
	last := start
	var mu sync.Mutex
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		// With a monotonic reading Sub ignores the system clock.
		if t := start.Add(now().Sub(start)); t.After(last) {
			last = t
		}
		return last
	}
}

// NotBefore returns a clock that shows at least t, for what began at t by a
// clock that has been set back since.
func NotBefore(now func() time.Time, t time.Time) func() time.Time {
	return func() time.Time {
		if at := now(); at.After(t) {
			return at
		}
		return t
	}
}
