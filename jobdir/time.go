package jobdir

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Time is a moment as trial and job files hold it: microsecond resolution,
// and either aware (with an offset, usually UTC) or naive (a local wall clock
// without zone). The kind is kept from reading to writing (Harbor job format,
// section 5.2).
//
// The zero Time is the naive year 1; fields that may be null are *Time.
type Time struct {
	t     time.Time
	naive bool
}

// UTC returns t as an aware time in UTC, cut to microseconds: the kind that
// trial phases carry.
func UTC(t time.Time) Time {
	return Time{t: t.UTC().Truncate(time.Microsecond)}
}

// Local returns the wall clock of t without its zone, cut to microseconds: the
// kind that a job's own times and occurred_at carry. Convert t to the wanted
// zone first; time.Now is already local.
func Local(t time.Time) Time {
	y, mo, d := t.Date()
	h, mi, s := t.Clock()
	us := t.Nanosecond() / 1000 * 1000
	return Time{t: time.Date(y, mo, d, h, mi, s, us, time.UTC), naive: true}
}

// Naive reports whether the time has no zone.
func (t Time) Naive() bool { return t.naive }

// In returns the moment as a time.Time. A naive time is read as a wall clock
// in loc; an aware one is converted to loc.
func (t Time) In(loc *time.Location) time.Time {
	if !t.naive {
		return t.t.In(loc)
	}
	y, mo, d := t.t.Date()
	h, mi, s := t.t.Clock()
	return time.Date(y, mo, d, h, mi, s, t.t.Nanosecond(), loc)
}

// Equal reports whether both are the same moment of the same kind.
func (t Time) Equal(u Time) bool { return t.naive == u.naive && t.t.Equal(u.t) }

// String returns the text that files carry: "2026-06-09T08:00:00.123456Z",
// without fraction when it is zero, with "+02:00" for other offsets and with
// nothing behind the clock when naive.
func (t Time) String() string {
	layout := "2006-01-02T15:04:05"
	if t.t.Nanosecond() != 0 {
		layout += ".000000"
	}
	if t.naive {
		return t.t.Format(layout)
	}
	return t.t.Format(layout + "Z07:00")
}

// MarshalText writes the text that files carry.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what [Time.MarshalText] writes.
func (t *Time) UnmarshalText(text []byte) error {
	read, err := ParseTime(string(text))
	if err != nil {
		return err
	}
	*t = read
	return nil
}

// LogValue implements [slog.LogValuer].
func (t Time) LogValue() slog.Value { return slog.StringValue(t.String()) }

// Reasons why a text is no time, in pydantic's words; they end up in messages
// of the form "Input should be a valid datetime …, <reason>".
var (
	errTimeShort     = errors.New("input is too short")
	errTimeExtra     = errors.New("unexpected extra characters at the end of the input")
	errYear          = errors.New("invalid character in year")
	errMonth         = errors.New("invalid character in month")
	errDay           = errors.New("invalid character in day")
	errHour          = errors.New("invalid character in hour")
	errMinute        = errors.New("invalid character in minute")
	errSecond        = errors.New("invalid character in second")
	errDateSep       = errors.New("invalid date separator, expected `-`")
	errDateTimeSep   = errors.New("invalid datetime separator, expected `T`, `t`, `_` or space")
	errTimeSep       = errors.New("invalid time separator, expected `:`")
	errFraction      = errors.New("second fraction value is missing")
	errZoneSign      = errors.New("invalid timezone sign")
	errZoneHour      = errors.New("invalid timezone hour")
	errZoneMinute    = errors.New("invalid timezone minute")
	errMonthRange    = errors.New("month value is outside expected range of 1-12")
	errDayRange      = errors.New("day value is outside expected range")
	errHourRange     = errors.New("hour value is outside expected range of 0-23")
	errMinuteRange   = errors.New("minute value is outside expected range of 0-59")
	errSecondRange   = errors.New("second value is outside expected range of 0-59")
	errZoneRange     = errors.New("timezone offset must be less than 24 hours")
	errYearRange     = errors.New("year 0 is out of range")
	errUnixRange     = errors.New("dates after 9999 are not supported as unix timestamps")
	errUnixRangeLow  = errors.New("dates before 0000 are not supported as unix timestamps")
	errUnixNotFinite = errors.New("NaN and infinity are not supported as unix timestamps")
)

// ParseTime reads the forms that Harbor's files may hold: a date and a clock
// joined by "T", "t", "_" or a space, seconds optional, a fraction cut to six
// digits, then nothing, "Z" or an offset; or a date alone.
func ParseTime(s string) (Time, error) {
	r := timeReader{rest: s}
	year, month, day := r.number(4, errYear), 0, 0
	r.sep("-", errDateSep)
	month = r.number(2, errMonth)
	r.sep("-", errDateSep)
	day = r.number(2, errDay)
	if r.err == nil {
		r.err = checkDate(year, month, day)
	}
	if r.err == nil && r.rest == "" {
		return Time{t: time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC), naive: true}, nil
	}
	r.sep("Tt _", errDateTimeSep)
	hour := r.number(2, errHour)
	r.sep(":", errTimeSep)
	minute := r.number(2, errMinute)
	second, micro := r.seconds()
	loc, naive := r.zone()
	switch {
	case r.err != nil:
		return Time{}, r.err
	case r.rest != "":
		return Time{}, errTimeExtra
	case hour > 23:
		return Time{}, errHourRange
	case minute > 59:
		return Time{}, errMinuteRange
	case second > 59:
		return Time{}, errSecondRange
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, micro*1000, loc)
	return Time{t: t, naive: naive}, nil
}

func checkDate(year, month, day int) error {
	if year == 0 {
		return errYearRange
	}
	if month < 1 || month > 12 {
		return errMonthRange
	}
	last := time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
	if day < 1 || day > last {
		return errDayRange
	}
	return nil
}

// unixWatershed separates seconds from milliseconds in numbers that stand for
// a time.
const unixWatershed = 2e10

// timeFromUnix reads a number as pydantic does: seconds since 1970, or
// milliseconds when its size cannot be seconds. The result is in UTC.
func timeFromUnix(x float64) (Time, error) {
	if x != x || x-x != 0 {
		return Time{}, errUnixNotFinite
	}
	if x > unixWatershed || x < -unixWatershed {
		x /= 1000
	}
	const year10000, year0 = 253402300800, -62167219200
	if x >= year10000 {
		return Time{}, errUnixRange
	}
	if x < year0 {
		return Time{}, errUnixRangeLow
	}
	sec := int64(x)
	if float64(sec) > x {
		sec--
	}
	micro := int64((x-float64(sec))*1e6 + 0.5)
	return UTC(time.Unix(sec, micro*1000)), nil
}

// timeReader consumes a time text from the left and keeps the first error.
type timeReader struct {
	rest string
	err  error
}

func (r *timeReader) number(digits int, bad error) int {
	if r.err != nil {
		return 0
	}
	if len(r.rest) < digits {
		r.err = errTimeShort
		return 0
	}
	n := 0
	for i := range digits {
		c := r.rest[i]
		if c < '0' || c > '9' {
			r.err = bad
			return 0
		}
		n = n*10 + int(c-'0')
	}
	r.rest = r.rest[digits:]
	return n
}

func (r *timeReader) sep(allowed string, bad error) {
	if r.err != nil {
		return
	}
	if r.rest == "" {
		r.err = errTimeShort
		return
	}
	for i := range len(allowed) {
		if r.rest[0] == allowed[i] {
			r.rest = r.rest[1:]
			return
		}
	}
	r.err = bad
}

// seconds reads the optional ":SS" and its optional fraction.
func (r *timeReader) seconds() (second, micro int) {
	if r.err != nil || r.rest == "" || r.rest[0] != ':' {
		return 0, 0
	}
	r.rest = r.rest[1:]
	second = r.number(2, errSecond)
	if r.err != nil || r.rest == "" || (r.rest[0] != '.' && r.rest[0] != ',') {
		return second, 0
	}
	r.rest = r.rest[1:]
	n := 0
	for n < len(r.rest) && r.rest[n] >= '0' && r.rest[n] <= '9' {
		if n < 6 {
			micro = micro*10 + int(r.rest[n]-'0')
		}
		n++
	}
	if n == 0 {
		r.err = errFraction
		return second, 0
	}
	for i := n; i < 6; i++ {
		micro *= 10
	}
	r.rest = r.rest[n:]
	return second, micro
}

func (r *timeReader) zone() (loc *time.Location, naive bool) {
	if r.err != nil || r.rest == "" {
		return time.UTC, true
	}
	sign := 1
	switch r.rest[0] {
	case 'Z', 'z':
		r.rest = r.rest[1:]
		return time.UTC, false
	case '+':
	case '-':
		sign = -1
	default:
		r.err = errZoneSign
		return time.UTC, false
	}
	r.rest = r.rest[1:]
	hours := r.number(2, errZoneHour)
	minutes := 0
	if r.err == nil && r.rest != "" {
		if r.rest[0] == ':' {
			r.rest = r.rest[1:]
		}
		minutes = r.number(2, errZoneMinute)
	}
	if r.err != nil {
		return time.UTC, false
	}
	if minutes > 59 || hours > 23 {
		r.err = errZoneRange
		return time.UTC, false
	}
	if hours == 0 && minutes == 0 {
		return time.UTC, false
	}
	offset := sign * (hours*3600 + minutes*60)
	return time.FixedZone(fmt.Sprintf("%+03d:%02d", sign*hours, minutes), offset), false
}
