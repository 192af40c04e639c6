package console

import (
	"fmt"
	"math"
	"time"
)

// ClockTime is a duration as a fixed-width time.
func ClockTime(d time.Duration) string {
	s := int(d.Seconds())
	if s < 3600 {
		return fmt.Sprintf("%02d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// Duration is a duration for people.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Seconds is Duration of a number of seconds, however large it is; "-" for none.
func Seconds(s float64) string {
	const most = float64(math.MaxInt64 / int64(time.Second))
	if math.IsNaN(s) {
		return "-"
	}
	return Duration(time.Duration(min(max(s, -most), most) * float64(time.Second)))
}

// Runtime is a whole number of seconds as Harbor writes it.
func Runtime(d time.Duration) string {
	s := int(d.Seconds())
	switch {
	case s >= 3600:
		return fmt.Sprintf("%dh %dm %ds", s/3600, s/60%60, s%60)
	case s >= 60:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	}
	return fmt.Sprintf("%ds", s)
}
