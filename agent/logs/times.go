package logs

import (
	"time"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// isoMillis and isoSeconds are times since 1970 as Python's isoformat writes them,
// nil for what is no time.
func isoMillis(v value.Value, keys ...string) *string { return isoTime(v, 1e3, keys...) }

func isoSeconds(v value.Value, keys ...string) *string { return isoTime(v, 1e6, keys...) }

func isoTime(v value.Value, micros float64, keys ...string) *string {
	x := amount(v, keys...)
	if x == nil {
		return nil
	}
	t := time.UnixMicro(int64(*x * micros)).UTC()
	layout := "2006-01-02T15:04:05+00:00"
	if t.Nanosecond() != 0 {
		layout = "2006-01-02T15:04:05.000000+00:00"
	}
	s := t.Format(layout)
	if !atif.ValidTimestamp(s) {
		return nil
	}
	return &s
}
