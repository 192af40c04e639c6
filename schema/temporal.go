package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-run/proctor/value"
)

// TemporalKind is the Python type of a date or time.
type TemporalKind string

// The kinds of dates and times that TOML and YAML documents can hold.
const (
	kindDate     TemporalKind = "date"
	kindTime     TemporalKind = "time"
	kindDateTime TemporalKind = "datetime"
)

// Temporal is a date or time in a TOML or YAML document. No scalar accepts it;
// where anything is allowed ([Any], [Object]) it becomes its ISO 8601 string as
// pydantic writes it.
type Temporal struct {
	value.Value // the ISO string, so that a Temporal is a value itself

	Kind TemporalKind
	Repr string // Python's representation, for error texts
}

// Clock is a time of day as written in a document.
type Clock struct {
	Hour, Minute, Second, Microsecond int
}

// Date returns a calendar date. The error is Python's for numbers that make
// no date.
func Date(year, month, day int) (Temporal, error) {
	if err := checkDate(year, month, day); err != nil {
		return Temporal{}, err
	}
	iso := fmt.Sprintf("%04d-%02d-%02d", year, month, day)
	return temporal(kindDate, iso, []int{year, month, day}, ""), nil
}

// Time returns a time of day.
func Time(c Clock) (Temporal, error) {
	if err := c.check(); err != nil {
		return Temporal{}, err
	}
	return temporal(kindTime, c.iso(), c.reprArgs(nil), ""), nil
}

// DateTime returns a point in time: local with a nil offset, else so many
// minutes east of UTC.
func DateTime(year, month, day int, c Clock, offset *int) (Temporal, error) {
	if err := errors.Join(checkDate(year, month, day), c.check()); err != nil {
		return Temporal{}, err
	}
	iso := fmt.Sprintf("%04d-%02d-%02dT%s", year, month, day, c.iso())
	zone := ""
	switch {
	case offset == nil:
	case *offset == 0:
		iso += "Z"
		zone = "tzinfo=datetime.timezone.utc"
	default:
		sign, minutes := '+', *offset
		if minutes < 0 {
			sign, minutes = '-', -minutes
		}
		iso += fmt.Sprintf("%c%02d:%02d", sign, minutes/60, minutes%60)
		zone = "tzinfo=" + reprOffset(*offset)
	}
	return temporal(kindDateTime, iso, c.reprArgs([]int{year, month, day}), zone), nil
}

func temporal(kind TemporalKind, iso string, args []int, zone string) Temporal {
	parts := make([]string, len(args), len(args)+1)
	for i, n := range args {
		parts[i] = fmt.Sprint(n)
	}
	if zone != "" {
		parts = append(parts, zone)
	}
	return Temporal{
		Value: value.Str(iso), Kind: kind,
		Repr: fmt.Sprintf("datetime.%s(%s)", kind, strings.Join(parts, ", ")),
	}
}

// reprOffset spells a timezone as Python does, whose durations keep days apart
// from non-negative seconds.
func reprOffset(minutes int) string {
	const day = 24 * 60
	if minutes < 0 {
		return fmt.Sprintf("datetime.timezone(datetime.timedelta(days=-1, seconds=%d))", (minutes+day)*60)
	}
	return fmt.Sprintf("datetime.timezone(datetime.timedelta(seconds=%d))", minutes*60)
}

func checkDate(year, month, day int) error {
	switch {
	case year < 1 || year > 9999:
		return fmt.Errorf("year %d is out of range", year)
	case month < 1 || month > 12:
		return errors.New("month must be in 1..12")
	case day < 1 || day > time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day():
		return errors.New("day is out of range for month")
	}
	return nil
}

func (c Clock) check() error {
	switch {
	case c.Hour < 0 || c.Hour > 23:
		return errors.New("hour must be in 0..23")
	case c.Minute < 0 || c.Minute > 59:
		return errors.New("minute must be in 0..59")
	case c.Second < 0 || c.Second > 59:
		return errors.New("second must be in 0..59")
	}
	return nil
}

func (c Clock) iso() string {
	text := fmt.Sprintf("%02d:%02d:%02d", c.Hour, c.Minute, c.Second)
	if c.Microsecond != 0 {
		text += fmt.Sprintf(".%06d", c.Microsecond)
	}
	return text
}

func (c Clock) reprArgs(date []int) []int {
	args := append(date, c.Hour, c.Minute)
	if c.Second != 0 || c.Microsecond != 0 {
		args = append(args, c.Second)
	}
	if c.Microsecond != 0 {
		args = append(args, c.Microsecond)
	}
	return args
}

// plain returns v with every Temporal in it replaced by its ISO string.
func plain(v value.Value) value.Value {
	switch v := v.(type) {
	case Temporal:
		return v.Value
	case value.List:
		out := make(value.List, len(v))
		for i, item := range v {
			out[i] = plain(item)
		}
		return out
	case *value.Object:
		out := value.NewObject(v.Len())
		for key, item := range v.All() {
			out.Append(key, plain(item))
		}
		return out
	case nil:
		return value.Null{}
	default:
		return v
	}
}

// Offset is a zone's offset from UTC in minutes, of the parts that a pattern
// has matched: nil for a time without zone.
func Offset(zulu, sign, hours, minutes string) *int {
	if zulu == "" && sign == "" {
		return nil
	}
	h, _ := strconv.Atoi(hours)
	m, _ := strconv.Atoi(minutes)
	offset := h*60 + m
	if sign == "-" {
		offset = -offset
	}
	return &offset
}
