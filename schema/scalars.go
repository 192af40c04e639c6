package schema

import (
	"math"
	"path"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/value"
)

const (
	msgDict       = "Input should be a valid dictionary"
	msgJSONObject = "Input should be an object"
)

const msgBoolParsing = "Input should be a valid boolean, unable to interpret input"

// Str accepts strings only.
func Str(c *Cursor, v value.Value) (string, bool) {
	s, ok := v.(value.Str)
	if !ok {
		c.Fail("string_type", "Input should be a valid string", v)
		return "", false
	}
	if value.HasSurrogate(string(s)) {
		c.Fail("string_unicode", "Input should be a valid string, unable to parse raw data as a unicode string", v)
		return "", false
	}
	return string(s), true
}

// NonEmpty accepts strings of at least one character.
func NonEmpty(c *Cursor, v value.Value) (string, bool) {
	s, ok := Str(c, v)
	if ok && s == "" {
		c.Fail("string_too_short", "String should have at least 1 character", v)
		return "", false
	}
	return s, ok
}

// Bool accepts booleans, 0 and 1, and the usual words in any letter case.
func Bool(c *Cursor, v value.Value) (bool, bool) {
	switch v := v.(type) {
	case value.Bool:
		return bool(v), true
	case value.Str:
		c.bend(lax)
		switch strings.ToLower(string(v)) {
		case "1", "true", "t", "yes", "y", "on":
			return true, true
		case "0", "false", "f", "no", "n", "off":
			return false, true
		}
		c.Fail("bool_parsing", msgBoolParsing, v)
		return false, false
	case value.Int:
		n, fits := v.Int64()
		return boolOf(c, n, fits, v)
	case value.Float:
		n, fits := integral(float64(v))
		return boolOf(c, n, fits, v)
	}
	c.Fail("bool_type", "Input should be a valid boolean", v)
	return false, false
}

func boolOf(c *Cursor, n int64, fits bool, input value.Value) (bool, bool) {
	c.bend(lax)
	switch {
	case !fits:
		c.Fail("bool_type", "Input should be a valid boolean", input)
		return false, false
	case n != 0 && n != 1:
		c.Fail("bool_parsing", msgBoolParsing, input)
		return false, false
	}
	return n == 1, true
}

// integral returns a float without fraction as an int64.
func integral(f float64) (int64, bool) {
	if f != math.Trunc(f) || f <= -(1<<63) || f >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// Enum accepts exactly the given words; its errors are of type "enum".
func Enum[T ~string](words ...T) Decoder[T] { return oneOf("enum", words) }

// Literal is [Enum] with errors of type "literal_error".
func Literal[T ~string](words ...T) Decoder[T] { return oneOf("literal_error", words) }

func oneOf[T ~string](kind string, words []T) Decoder[T] {
	return func(c *Cursor, v value.Value) (T, bool) {
		if s, ok := v.(value.Str); ok && slices.Contains(words, T(s)) {
			return T(s), true
		}
		c.Fail(kind, "Input should be "+alternatives(words), v)
		return "", false
	}
}

// alternatives spells 'a', 'b' or 'c'.
func alternatives[T ~string](words []T) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = value.Repr(value.Str(w))
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// Path accepts strings and normalises them as Python's pathlib does for POSIX
// paths: repeated slashes, "." components and trailing slashes go, ".." and
// "~" stay, exactly two leading slashes stay two, and nothing at all is ".".
func Path(c *Cursor, v value.Value) (string, bool) {
	s, ok := v.(value.Str)
	if !ok {
		c.Fail("path_type", "Input is not a valid path for <class 'pathlib.Path'>", v)
		return "", false
	}
	c.bend(lax)
	return CleanPath(string(s)), true
}

// CleanPath normalises a path as [Path] does.
func CleanPath(p string) string {
	root := ""
	switch {
	case strings.HasPrefix(p, "//") && !strings.HasPrefix(p, "///"):
		root = "//"
	case path.IsAbs(p):
		root = "/"
	}
	var parts []string
	for part := range strings.SplitSeq(p, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	if root == "" && len(parts) == 0 {
		return "."
	}
	return root + strings.Join(parts, "/")
}

// Any accepts everything. Dates and times become ISO strings.
func Any(_ *Cursor, v value.Value) (value.Value, bool) {
	return plain(v), true
}

// Object accepts any table, with dates and times inside as ISO strings.
func Object(c *Cursor, v value.Value) (*value.Object, bool) {
	obj, ok := v.(*value.Object)
	if !ok {
		c.Fail("dict_type", c.word(msgDict, msgJSONObject), v)
		return nil, false
	}
	return plain(obj).(*value.Object), true
}
