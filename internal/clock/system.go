package clock

import "time"

// Or returns a clock that was given, or the system's where it is nil.
func Or(now func() time.Time) func() time.Time {
	if now != nil {
		return now
	}
	return time.Now //nolint:forbidigo // the one place for options that were left out
}
