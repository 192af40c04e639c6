// Package schema validates documents of Python-compatible values (JSON, TOML
// or YAML, decoded to package value) into Go values, with the lax coercions, error
// types and words of pydantic 2.13.
//
// A [Decoder] turns one value into a Go value. Decoders for scalars ([Int],
// [Float], [Str], [Bool], [Enum], …) are combined by [List], [Dict], [Nullable],
// [Union] and [Model]; [Before] and [After] add rules. [Validate] runs a decoder
// over a document:
//
//	type Check struct {
//		Command string
//		Retries int
//	}
//
//	func decodeCheck(f *schema.Fields) Check {
//		return Check{
//			Command: schema.Required(f, "command", schema.Str),
//			Retries: schema.Default(f, "retries", 3, schema.SmallInt),
//		}
//	}
//
//	check, report, err := schema.Validate(doc, schema.Model("Check", decodeCheck))
//
// All errors of a document are collected, in the order in which fields are asked
// for. Unknown keys are no errors; they are listed in the [Report]. Formats that
// allow none use [Closed].
package schema

import (
	"slices"

	"github.com/proctor-run/proctor/value"
)

// Decoder turns a value into a T. It reports what is wrong through the cursor
// and then returns false; the T of a failed decoder must not be used.
type Decoder[T any] func(c *Cursor, v value.Value) (T, bool)

// Report lists what a validation noticed without rejecting it.
type Report struct {
	// Unknown holds the location of every key that no field asked for.
	Unknown []Location
	// Warnings are deprecations and other remarks, in order of discovery.
	Warnings []Warning
}

// Warning is a remark about one place of a document.
type Warning struct {
	Loc  Location
	Text string
}

// Validate decodes a document. The error is an [*Errors] titled with the name
// of the outermost model.
func Validate[T any](v value.Value, d Decoder[T]) (T, Report, error) {
	return validate(v, d, &run{exact: exact})
}

// ValidateJSON is [Validate] in the words of pydantic for documents that it
// parses itself, as model_validate_json does: "object" and "array" instead of
// "dictionary" and "list".
func ValidateJSON[T any](v value.Value, d Decoder[T]) (T, Report, error) {
	return validate(v, d, &run{exact: exact, json: true})
}

func validate[T any](v value.Value, d Decoder[T], r *run) (T, Report, error) {
	out, ok := d(&Cursor{run: r}, v)
	if !ok {
		var zero T
		return zero, r.report, &Errors{Title: r.title, List: r.errors}
	}
	return out, r.report, nil
}

// exactness tells how much a value had to be bent to fit; unions prefer the
// branch that bends least.
type exactness int

const (
	lax exactness = iota
	strict
	exact
)

// run is the state of one validation.
type run struct {
	title  string
	errors []Error
	report Report
	exact  exactness
	json   bool // the words of ValidateJSON
	spare  []Cursor
}

// spareCursors is how many cursors are allocated at once.
const spareCursors = 8

// Cursor is the place in a document where a decoder stands.
type Cursor struct {
	run    *run
	parent *Cursor
	key    string
	index  int // -1: key counts
}

// Fail records an error at the cursor.
func (c *Cursor) Fail(kind, msg string, input value.Value) {
	c.Report(Error{Type: kind, Msg: msg, Input: input})
}

// Report records an error that has all but its location.
func (c *Cursor) Report(e Error) {
	e.Loc = c.Location()
	c.run.errors = append(c.run.errors, e)
}

// word returns which of two words for the same thing this validation uses.
func (c *Cursor) word(python, json string) string {
	if c.run.json {
		return json
	}
	return python
}

// Warn records a remark at the cursor.
func (c *Cursor) Warn(text string) {
	c.run.report.Warnings = append(c.run.report.Warnings, Warning{Loc: c.Location(), Text: text})
}

// Location returns the path from the root to the cursor.
func (c *Cursor) Location() Location {
	var loc Location
	for at := c; at.parent != nil; at = at.parent {
		if at.index < 0 {
			loc = append(loc, at.key)
			continue
		}
		loc = append(loc, at.index)
	}
	for i, j := 0, len(loc)-1; i < j; i, j = i+1, j-1 {
		loc[i], loc[j] = loc[j], loc[i]
	}
	return loc
}

// Child returns the place below c under a key.
func (c *Cursor) Child(key string) *Cursor { return c.below(key, -1) }

// Item returns the place of a list's item.
func (c *Cursor) Item(i int) *Cursor { return c.below("", i) }

func (c *Cursor) below(key string, index int) *Cursor {
	r := c.run
	if len(r.spare) == 0 {
		r.spare = make([]Cursor, spareCursors)
	}
	child := &r.spare[0]
	r.spare = r.spare[1:]
	*child = Cursor{run: r, parent: c, key: key, index: index}
	return child
}

func (c *Cursor) titled(title string) {
	if c.run.title == "" {
		c.run.title = title
	}
}

func (c *Cursor) bend(to exactness) {
	c.run.exact = min(c.run.exact, to)
}

// Fields gives a model's decoder access to the keys of a table.
type Fields struct {
	c      *Cursor
	obj    *value.Object
	known  []string // of the keys that were given
	failed bool
}

const msgMissing = "Field required"

// Has reports whether the key was given, even as null.
func (f *Fields) Has(key string) bool {
	return f.obj.Has(key)
}

// Ignore marks keys as known although no field holds them.
func (f *Fields) Ignore(keys ...string) {
	f.known = append(f.known, keys...)
}

// get returns a key's value and notes that the key is known.
func (f *Fields) get(key string) (value.Value, bool) {
	v, ok := f.obj.Get(key)
	if ok {
		f.known = append(f.known, key)
	}
	return v, ok
}

// Required decodes a key that must be given.
func Required[T any](f *Fields, key string, d Decoder[T]) T {
	v, ok := f.get(key)
	if !ok {
		f.failed = true
		f.c.Child(key).Fail("missing", msgMissing, f.obj)
		var zero T
		return zero
	}
	return decodeField(f, key, v, d)
}

// Default decodes a key, or returns def where it is absent. An explicit null
// is handed to the decoder, which rejects it unless it is [Nullable].
func Default[T any](f *Fields, key string, def T, d Decoder[T]) T {
	v, ok := f.get(key)
	if !ok {
		return def
	}
	return decodeField(f, key, v, d)
}

// Optional decodes a key that may be absent or null; both give nil.
func Optional[T any](f *Fields, key string, d Decoder[T]) *T {
	return Default(f, key, nil, Nullable(d))
}

// OptionalList decodes a list that may be absent or null; both give nil.
func OptionalList[T any](f *Fields, key string, d Decoder[[]T]) []T {
	return Default(f, key, nil, NullableList(d))
}

// Nested decodes a table that, when absent, is what an empty table gives.
func Nested[T any](f *Fields, key string, d Decoder[T]) T {
	v, ok := f.get(key)
	if !ok {
		v = &value.Object{}
	}
	return decodeField(f, key, v, d)
}

// Decode is [Required] or [Default] for decoders that keep their result
// themselves: d is called when the key is given and reports whether it fits.
func (f *Fields) Decode(key string, required bool, d func(c *Cursor, v value.Value) bool) {
	v, ok := f.get(key)
	switch {
	case ok:
		f.failed = !d(f.c.Child(key), v) || f.failed
	case required:
		f.failed = true
		f.c.Child(key).Fail("missing", msgMissing, f.obj)
	}
}

func decodeField[T any](f *Fields, key string, v value.Value, d Decoder[T]) T {
	out, ok := d(f.c.Child(key), v)
	if !ok {
		f.failed = true
	}
	return out
}

// Model decodes a table. name is the model's class name, which error texts and
// union branches show. Keys that fields does not ask for are ignored and
// reported.
func Model[T any](name string, fields func(*Fields) T) Decoder[T] {
	return model(name, fields, func(f *Fields, key string) {
		f.c.run.report.Unknown = append(f.c.run.report.Unknown, f.c.Child(key).Location())
	})
}

// Closed is [Model] for formats that allow no other keys: those that fields
// does not ask for are errors of type "extra_forbidden", after all others of
// the table.
func Closed[T any](name string, fields func(*Fields) T) Decoder[T] {
	return model(name, fields, func(f *Fields, key string) {
		f.failed = true
		input, _ := f.obj.Get(key)
		f.c.Child(key).Fail("extra_forbidden", "Extra inputs are not permitted", input)
	})
}

func model[T any](name string, fields func(*Fields) T, unknown func(f *Fields, key string)) Decoder[T] {
	return func(c *Cursor, v value.Value) (T, bool) {
		c.titled(name)
		obj, ok := v.(*value.Object)
		if !ok {
			c.Fail("model_type", c.word("Input should be a valid dictionary or instance of "+name, msgJSONObject), v)
			var zero T
			return zero, false
		}
		f := &Fields{c: c, obj: obj, known: make([]string, 0, min(obj.Len(), maxKnown))}
		out := fields(f)
		for key := range obj.All() {
			if !slices.Contains(f.known, key) {
				unknown(f, key)
			}
		}
		return out, !f.failed
	}
}

// maxKnown is how many keys a model is expected to know at most.
const maxKnown = 32
