package atif

import (
	"errors"
	"fmt"
	"time"

	"github.com/proctor-run/proctor/value"
)

// checkISO reports whether CPython 3.12 and 3.13 accept text as
// datetime.fromisoformat does, with their messages. Text is checked byte by byte,
// as there.
func checkISO(text string) error {
	d, ok := parseISO(text)
	if !ok {
		return fmt.Errorf("Invalid isoformat string: %s", value.Repr(value.Str(text))) //nolint:staticcheck // Python's words
	}
	return d.check()
}

// minISO is the length of the shortest date, YYYYWww.
const minISO = 7

// isoTime holds the parts of a date and time. The parts of a text that could be
// parsed may still be out of range.
type isoTime struct {
	year, month, day     int
	hour, minute, second int
	offset               time.Duration // east of UTC
}

func (d isoTime) check() error {
	switch {
	case d.year < 1:
		return fmt.Errorf("year %d is out of range", d.year)
	case d.month < 1 || d.month > 12:
		return errors.New("month must be in 1..12")
	case d.day < 1 || d.day > daysIn(d.year, d.month):
		return errors.New("day is out of range for month")
	case d.hour > 23:
		return errors.New("hour must be in 0..23")
	case d.minute > 59:
		return errors.New("minute must be in 0..59")
	case d.second > 59:
		return errors.New("second must be in 0..59")
	case d.offset <= -24*time.Hour || d.offset >= 24*time.Hour:
		return errors.New("offset must be a timedelta strictly between -timedelta(hours=24) and timedelta(hours=24)")
	}
	return nil
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// isoText reads text from left to right. What is behind its end is a zero byte.
type isoText string

func (s isoText) at(i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

// number reads so many digits from i on.
func (s isoText) number(i, digits int) (int, bool) {
	n := 0
	for j := range digits {
		c := s.at(i + j)
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func parseISO(text string) (d isoTime, ok bool) {
	if len(text) < minISO {
		return d, false
	}
	end := separator(isoText(text))
	if end < 0 || end > len(text) || !d.parseDate(isoText(text[:end])) {
		return d, false
	}
	// One character separates date and time, whatever it is.
	rest := []rune(text[end:])
	if len(rest) <= 1 {
		return d, len(rest) == 0
	}
	return d, d.parseTime(isoText(string(rest[1:])))
}

// separator is where the date ends: the forms of dates differ in their fifth and
// sixth characters.
func separator(s isoText) int {
	switch {
	case len(s) == minISO:
		return minISO
	case s.at(4) == '-' && s.at(5) != 'W':
		return len("YYYY-MM-DD")
	case s.at(4) == '-':
		return weekSeparator(s)
	case s.at(4) != 'W':
		return len("YYYYMMDD")
	}
	// YYYYWww or YYYYWwwD, and digits of a time may follow at once.
	end := minISO
	for isDigit(s.at(end)) {
		end++
	}
	if end < len("YYYYWwwD")+1 {
		return end
	}
	return minISO + end%2
}

// weekSeparator is where YYYY-Www or YYYY-Www-D ends; a hyphen may also separate
// the time.
func weekSeparator(s isoText) int {
	const week, day = len("YYYY-Www"), len("YYYY-Www-D")
	switch {
	case len(s) > week && s.at(week) == '-' && len(s) == week+1:
		return -1
	case len(s) > week && s.at(week) == '-' && !isDigit(s.at(day)):
		return day
	}
	return week
}

// parseDate reads YYYY-MM-DD, YYYYMMDD, or a week with or without its day.
func (d *isoTime) parseDate(s isoText) (ok bool) {
	if d.year, ok = s.number(0, 4); !ok {
		return false
	}
	i := 4
	dashed := s.at(i) == '-'
	if dashed {
		i++
	}
	if s.at(i) == 'W' {
		return d.parseWeek(s, i+1, dashed)
	}
	if d.month, ok = s.number(i, 2); !ok {
		return false
	}
	if i += 2; dashed {
		if s.at(i) != '-' {
			return false
		}
		i++
	}
	d.day, ok = s.number(i, 2)
	return ok && i+2 == len(s)
}

func (d *isoTime) parseWeek(s isoText, i int, dashed bool) bool {
	week, ok := s.number(i, 2)
	if !ok {
		return false
	}
	i += 2
	day := 1
	if i < len(s) {
		if dashed {
			if s.at(i) != '-' {
				return false
			}
			i++
		}
		if day, ok = s.number(i, 1); !ok {
			return false
		}
		i++
	}
	if i != len(s) || d.year < 1 || day < 1 || day > 7 || week < 1 {
		return false
	}
	// The week that holds the fourth of January is the first.
	first := time.Date(d.year, 1, 4, 0, 0, 0, 0, time.UTC)
	monday := first.AddDate(0, 0, -(int(first.Weekday())+6)%7)
	at := monday.AddDate(0, 0, 7*(week-1)+day-1)
	if year, w := monday.AddDate(0, 0, 7*(week-1)).ISOWeek(); year != d.year || w != week || at.Year() > 9999 || at.Year() < 1 {
		return false
	}
	d.year, d.month, d.day = at.Year(), int(at.Month()), at.Day()
	return true
}

// parseTime reads a time of day and its offset from UTC. CPython does not mind
// what it cannot read behind a time when an offset follows.
func (d *isoTime) parseTime(s isoText) bool {
	zone := 0
	for zone < len(s) && s[zone] != '+' && s[zone] != '-' && s[zone] != 'Z' {
		zone++
	}
	clock, all, ok := parseClock(s, 0, zone)
	d.hour, d.minute, d.second = clock[0], clock[1], clock[2]
	switch {
	case !ok:
		return false
	case zone == len(s):
		return all
	case s[zone] == 'Z':
		return zone+1 == len(s)
	}
	clock, all, ok = parseClock(s, zone+1, len(s))
	d.offset = time.Duration(clock[0])*time.Hour + time.Duration(clock[1])*time.Minute + time.Duration(clock[2])*time.Second + time.Duration(clock[3])*time.Microsecond
	if s[zone] == '-' {
		d.offset = -d.offset
	}
	return ok && all
}

// parseClock reads HH[[:]MM[[:]SS[.ffffff]]] up to end into hours, minutes, seconds
// and microseconds. all is false where something is left over.
func parseClock(s isoText, i, end int) (clock [4]int, all, ok bool) {
	colons := false
	for n := range 3 {
		if clock[n], ok = s.number(i, 2); !ok {
			return clock, false, false
		}
		c := s.at(i + 2)
		i += 3
		if n == 0 {
			colons = c == ':'
		}
		switch {
		case i >= end:
			return clock, c == 0, true
		case colons && c == ':':
			continue
		case c == '.' || c == ',':
			clock[3], all, ok = parseFraction(s, i, end)
			return clock, all, ok
		case colons:
			return clock, false, false
		}
		i-- // the next two digits follow at once
	}
	clock[3], all, ok = parseFraction(s, i, end)
	return clock, all, ok
}

// parseFraction reads microseconds; digits beyond the sixth are cut off.
func parseFraction(s isoText, i, end int) (micros int, all, ok bool) {
	digits := min(end-i, 6)
	if micros, ok = s.number(i, digits); !ok {
		return 0, false, false
	}
	for range 6 - digits {
		micros *= 10
	}
	for i += digits; isDigit(s.at(i)); i++ {
	}
	return micros, s.at(i) == 0, true
}
