// Package setting makes flags and environment variables of programs from the settings
// of agents, as Harbor's descriptors do (Harbor agent format, section 3.1).
//
// It differs from Harbor in that values reach the program as they are: what means
// something to a shell is quoted.
package setting

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/shellword"
	"github.com/proctor-run/proctor/value"
)

// Kind says what values a setting takes. The empty one is Text.
type Kind string

// The kinds, by Harbor's names.
const (
	Text Kind = "str"  // text; numbers are written as Python writes them
	Int  Kind = "int"  // a whole number of any size, also as text or as a float without fraction
	Bool Kind = "bool" // true or false; also the words true, 1, yes, false, 0, no in any letter case
	Enum Kind = "enum" // one of the choices; letter case and spaces around it do not count
)

// MaxText bounds the text of one value, in bytes: half of the longest argument that
// Linux hands to a program.
const MaxText = 64 << 10

// Setting describes one setting of a program. At most one of Flag and Format is set;
// without them and Env the value is known by the setting's name alone.
type Setting struct {
	Name, Summary string
	// Flag is a flag like "--effort" that is followed by the value; that of a Bool
	// stands alone where it is true, and is not given where it is false.
	Flag string
	// Format has words, with blanks between them, in which "{value}" stands for the
	// value: "-c model={value}". Quotes in it mean themselves.
	Format string
	// Env is the environment variable that has the value.
	Env string

	Kind    Kind
	Choices []string // of an Enum
	// Default counts where neither the setting nor HostEnv is given; nil for none.
	Default value.Value
	// HostEnv is the variable of this machine that counts where the setting is not
	// given, also where it is empty.
	HostEnv string
	// True and False are the texts of a Bool, "true" and "false" where they are empty.
	True, False string
}

// Value returns the text of a setting: of what was given, else of the variable of this
// machine, else of the default. given is nil where the setting is not given at all;
// [value.Null] asks for no value, and then, as where nothing says one, set is false. host
// looks up variables of this machine; it may be nil. The error of a value that does not
// fit is a ValueError.
func (s Setting) Value(given value.Value, host func(string) (string, bool)) (text string, set bool, err error) {
	v, err := s.resolve(given, host)
	if err != nil || v == nil {
		return "", false, err
	}
	return s.text(v), true, nil
}

// Flags makes the flags, variables and texts of settings, in the order in which they are
// described. given may be nil, and what else is in it is passed over; host is as
// [Setting.Value] has it. Each of words is one word for a shell, quoted where it has to
// be; env is KEY=VALUE, not quoted. values has the texts of all that have one, by name.
func Flags(all []Setting, given *value.Object, host func(string) (string, bool)) (words, env []string, values map[string]string, err error) {
	values = make(map[string]string, len(all))
	for _, s := range all {
		var of value.Value
		if given != nil {
			of, _ = given.Get(s.Name)
			if of == nil && given.Has(s.Name) {
				of = value.Null{}
			}
		}
		v, err := s.resolve(of, host)
		if err != nil {
			return nil, nil, nil, err
		}
		if v == nil {
			continue
		}
		values[s.Name] = s.text(v)
		words = append(words, s.words(v)...)
		if s.Env != "" {
			env = append(env, s.Env+"="+s.text(v))
		}
	}
	return words, env, values, nil
}

// words are the flags of a value.
func (s Setting) words(v value.Value) []string {
	on, isBool := v.(value.Bool)
	switch {
	case s.Format != "":
		var out []string
		for word := range strings.FieldsSeq(s.Format) {
			out = append(out, shellword.Quote(strings.ReplaceAll(word, placeholder, s.text(v))))
		}
		return out
	case s.Flag == "", isBool && !bool(on):
		return nil
	case isBool:
		return []string{shellword.Quote(s.Flag)}
	}
	return []string{shellword.Quote(s.Flag), shellword.Quote(s.text(v))}
}

// placeholder stands for the value in a format.
const placeholder = "{value}"

func (s Setting) text(v value.Value) string {
	on, isBool := v.(value.Bool)
	switch {
	case isBool && bool(on):
		return cmp.Or(s.True, "true")
	case isBool:
		return cmp.Or(s.False, "false")
	}
	return value.Text(v)
}

// resolve returns the value that counts, nil for none.
func (s Setting) resolve(given value.Value, host func(string) (string, bool)) (value.Value, error) {
	from := ""
	if given == nil && s.HostEnv != "" && host != nil {
		if text, there := host(s.HostEnv); there {
			given, from = value.Str(text), " of the variable "+s.HostEnv
		}
	}
	if given == nil {
		given = s.Default
	}
	if value.IsNull(given) {
		return nil, nil //nolint:nilnil // no value is what is asked for, and no error
	}
	v, want := s.coerce(given)
	if want == "" {
		want = fits(s.text(v))
	}
	if want != "" {
		return nil, exception.Errorf(exception.ValueError, "Invalid value for '%s': %s%s, want %s", s.Name, value.ShortRepr(value.Repr(given)), from, want)
	}
	return v, nil
}

// fits says what is wanted instead of a text that no program can be given.
func fits(text string) string {
	switch {
	case len(text) > MaxText:
		return "at most 64 KiB"
	case strings.ContainsRune(text, 0):
		return "text without NUL characters"
	case value.HasSurrogate(text):
		return "text that is Unicode"
	}
	return ""
}

// coerce makes a value of the kind, or says what is wanted instead.
func (s Setting) coerce(v value.Value) (_ value.Value, want string) {
	switch s.Kind {
	case Text, "":
		return coerceText(v)
	case Int:
		return coerceInt(v)
	case Bool:
		return coerceBool(v)
	case Enum:
		return s.choose(v)
	}
	return nil, "nothing, for its kind is " + value.ShortRepr(value.Repr(value.Str(s.Kind)))
}

func coerceText(v value.Value) (value.Value, string) {
	switch v := v.(type) {
	case value.Str, value.Int, value.Float:
		return value.Str(value.Text(v)), ""
	}
	return nil, "text or a number"
}

func coerceInt(v value.Value) (value.Value, string) {
	switch v := v.(type) {
	case value.Int:
		return v, ""
	case value.Float:
		if f := float64(v); f == math.Trunc(f) {
			if n, err := value.Truncate(f); err == nil {
				return n, ""
			}
		}
	case value.Str:
		if n, err := value.ParseInt(string(v)); err == nil {
			return n, ""
		}
	}
	return nil, "a whole number"
}

func coerceBool(v value.Value) (value.Value, string) {
	switch v := v.(type) {
	case value.Bool:
		return v, ""
	case value.Str:
		switch strings.ToLower(string(v)) {
		case "true", "1", "yes":
			return value.Bool(true), ""
		case "false", "0", "no":
			return value.Bool(false), ""
		}
	}
	return nil, "true or false"
}

// choose returns the choice as it is written in the list.
func (s Setting) choose(v value.Value) (value.Value, string) {
	if text, ok := v.(value.Str); ok {
		typed := strings.ToLower(value.Strip(string(text)))
		if i := slices.IndexFunc(s.Choices, func(c string) bool { return strings.ToLower(c) == typed }); i >= 0 {
			return value.Str(s.Choices[i]), ""
		}
	}
	return nil, "one of " + strings.Join(s.Choices, ", ")
}

// Check reports a description that contradicts itself, for readers of such
// descriptions. The error names the setting.
func (s Setting) Check() error {
	wrong := s.contradiction()
	if wrong == "" {
		if _, err := s.resolve(s.Default, nil); err != nil {
			wrong = "its default: " + err.Error()
		}
	}
	if wrong == "" {
		return nil
	}
	return exception.Errorf(exception.ValueError, "setting %s: %s", value.ShortRepr(value.Repr(value.Str(s.Name))), wrong)
}

// contradiction says what is wrong besides the default.
func (s Setting) contradiction() string {
	switch {
	case !isName(s.Name):
		return "its name must be of letters, digits, _ and -"
	case !slices.Contains([]Kind{"", Text, Int, Bool, Enum}, s.Kind):
		return "its type must be str, int, bool or enum"
	case (s.Kind == Enum) != (len(s.Choices) > 0):
		return "there must be choices where the type is enum, and nowhere else"
	case s.Kind != Bool && s.True+s.False != "":
		return "texts for true and false are for those of type bool"
	case s.Flag != "" && s.Format != "":
		return "it has a flag and a format; one of them is enough"
	case s.Flag != "" && !isFlag(s.Flag):
		return "its flag must be one word that begins with -"
	case s.Format != "" && !strings.Contains(s.Format, placeholder):
		return "its format lacks " + placeholder
	case s.Env != "" && !isVariable(s.Env), s.HostEnv != "" && !isVariable(s.HostEnv):
		return "variables must have names of letters, digits and _"
	}
	return ""
}

func isFlag(s string) bool { return s[0] == '-' && !strings.ContainsFunc(s, value.IsSpace) }

func isName(s string) bool { return s != "" && isVariable(strings.ReplaceAll(s, "-", "_")) }

func isVariable(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9' || i == 0) {
			return false
		}
	}
	return s != ""
}
