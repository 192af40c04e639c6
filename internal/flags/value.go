// Package flags has the kinds of flags that commands are made of: ones whose absence
// differs from every value, repeatable ones, choices, and those that are refused with
// a reason.
package flags

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/value"
)

// optionalValue is a flag whose absence differs from every value.
type optionalValue[T any] struct {
	dst   **T
	parse func(string) (T, error)
	kind  string
}

func (o *optionalValue[T]) Set(text string) error {
	v, err := o.parse(text)
	if err != nil {
		return err
	}
	*o.dst = &v
	return nil
}

func (o *optionalValue[T]) String() string {
	if o == nil || o.dst == nil || *o.dst == nil {
		return ""
	}
	return fmt.Sprint(**o.dst)
}

func (o *optionalValue[T]) Type() string { return o.kind }

// Optional defines a flag that leaves *dst nil unless it is given.
func Optional[T any](fs *pflag.FlagSet, dst **T, parse func(string) (T, error), name, short, usage string) {
	var zero T
	value := &optionalValue[T]{dst: dst, parse: parse, kind: fmt.Sprintf("%T", zero)}
	flag := fs.VarPF(value, name, short, usage)
	if _, isBool := any(zero).(bool); isBool {
		flag.NoOptDefVal = "true"
	}
}

// listValue is a repeatable flag. Several flags may fill one list, in the order of
// the command line.
type listValue struct{ dst *[]string }

func (l listValue) Set(text string) error {
	*l.dst = append(*l.dst, text)
	return nil
}

func (l listValue) String() string {
	if l.dst == nil {
		return ""
	}
	return strings.Join(*l.dst, ",")
}

// Type is the name that completion knows repeatable flags by.
func (l listValue) Type() string { return "stringArray" }

// List defines a repeatable flag. Its aliases are hidden.
func List(fs *pflag.FlagSet, dst *[]string, name, short, usage string, aliases ...string) {
	fs.VarP(listValue{dst}, name, short, usage)
	for _, alias := range aliases {
		fs.Var(listValue{dst}, alias, "as --"+name)
		fs.Lookup(alias).Hidden = true
	}
}

// String takes text as it is.
func String(s string) (string, error) { return s, nil }

// Int reads a number as Python does, where Harbor's command line comes from.
func Int(s string) (int, error) {
	n, err := value.ParseInt(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	v, ok := n.Int64()
	if !ok || int64(int(v)) != v {
		return 0, fmt.Errorf("%q is out of range", s)
	}
	return int(v), nil
}

// AtLeast reads a number as Int does, and refuses a smaller one than least.
func AtLeast(least int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := Int(s)
		if err == nil && n < least {
			err = fmt.Errorf("want at least %d", least)
		}
		return n, err
	}
}

// Positive reads a number as Float does, and refuses one that is not above 0.
func Positive(s string) (float64, error) {
	f, err := Float(s)
	if err == nil && !(f > 0) {
		err = errors.New("want more than 0")
	}
	return f, err
}

// Share reads a number from 0 to 1.
func Share(s string) (float64, error) {
	f, err := Float(s)
	if err == nil && !(f >= 0 && f <= 1) {
		err = errors.New("want a number from 0 to 1")
	}
	return f, err
}

// Once is parse for a flag that counts once: a second one would silently replace
// the first.
func Once[T any](parse func(string) (T, error)) func(string) (T, error) {
	given := ""
	return func(s string) (T, error) {
		v, err := parse(s)
		if err == nil && given != "" {
			return v, fmt.Errorf("it can be given once, and %q was given before", given)
		}
		given = s
		return v, err
	}
}

// Float reads a number as Python does.
func Float(s string) (float64, error) {
	f, err := value.ParseFloat(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return float64(f), nil
}

// Bool reads true or false, as strconv.ParseBool does.
func Bool(s string) (bool, error) {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", s)
	}
	return b, nil
}

// NotBool reads the opposite.
func NotBool(s string) (bool, error) {
	b, err := Bool(s)
	return !b, err
}
