package schema

import (
	"slices"

	"github.com/proctor-run/proctor/value"
)

// Nullable accepts null as nil besides what d accepts.
func Nullable[T any](d Decoder[T]) Decoder[*T] {
	return func(c *Cursor, v value.Value) (*T, bool) {
		if value.IsNull(v) {
			return nil, true
		}
		out, ok := d(c, v)
		return &out, ok
	}
}

// NullableList accepts null as a nil list besides what d accepts.
func NullableList[T any](d Decoder[[]T]) Decoder[[]T] {
	return func(c *Cursor, v value.Value) ([]T, bool) {
		if value.IsNull(v) {
			return nil, true
		}
		return d(c, v)
	}
}

// List decodes a list whose items all fit d. The result is never nil.
func List[T any](d Decoder[T]) Decoder[[]T] {
	return func(c *Cursor, v value.Value) ([]T, bool) {
		list, ok := Items(c, v)
		if !ok {
			return nil, false
		}
		return items(c, list, d)
	}
}

// Items accepts any list, for decoders that go through its items themselves.
func Items(c *Cursor, v value.Value) (value.List, bool) {
	list, ok := v.(value.List)
	if !ok {
		c.Fail("list_type", c.word("Input should be a valid list", "Input should be a valid array"), v)
	}
	return list, ok
}

// Set decodes a list of items that all fit d, without duplicates, in order of
// first appearance. The result is never nil.
func Set[T comparable](d Decoder[T]) Decoder[[]T] {
	return func(c *Cursor, v value.Value) ([]T, bool) {
		list, ok := v.(value.List)
		if !ok {
			c.Fail("set_type", "Input should be a valid set", v)
			return nil, false
		}
		c.bend(lax)
		all, ok := items(c, list, d)
		unique := make([]T, 0, len(all))
		seen := make(map[T]bool, len(all))
		for _, item := range all {
			if !seen[item] {
				seen[item] = true
				unique = append(unique, item)
			}
		}
		return unique, ok
	}
}

func items[T any](c *Cursor, list value.List, d Decoder[T]) ([]T, bool) {
	out := make([]T, 0, len(list))
	allOK := true
	for i, item := range list {
		decoded, ok := d(c.Item(i), item)
		allOK = allOK && ok
		out = append(out, decoded)
	}
	return out, allOK
}

// Map is the ordered map of package value.
type Map[T any] = value.Map[T]

// Dict decodes a table with free keys whose values all fit d.
func Dict[T any](d Decoder[T]) Decoder[Map[T]] {
	return func(c *Cursor, v value.Value) (Map[T], bool) {
		var out Map[T]
		obj, ok := v.(*value.Object)
		if !ok {
			c.Fail("dict_type", c.word(msgDict, msgJSONObject), v)
			return out, false
		}
		allOK := true
		for key, item := range obj.All() {
			decoded, ok := d(c.Child(key), item)
			allOK = allOK && ok
			out.Set(key, decoded)
		}
		return out, allOK
	}
}

// Before lets a rule change or reject the raw value before d sees it. The
// error's text becomes a "value_error".
func Before[T any](rule func(c *Cursor, v value.Value) (value.Value, error), d Decoder[T]) Decoder[T] {
	return func(c *Cursor, v value.Value) (T, bool) {
		changed, err := rule(c, v)
		if err != nil {
			c.Reject(err, v)
			var zero T
			return zero, false
		}
		return d(c, changed)
	}
}

// After lets a rule change or reject what d decoded; it is not asked when d
// failed. The error's text becomes a "value_error".
func After[T any](d Decoder[T], rule func(T) (T, error)) Decoder[T] {
	return func(c *Cursor, v value.Value) (T, bool) {
		out, ok := d(c, v)
		if !ok {
			return out, false
		}
		out, err := rule(out)
		if err != nil {
			c.Reject(err, v)
			return out, false
		}
		return out, true
	}
}

// Convert turns what d decoded into another type.
func Convert[T, U any](d Decoder[T], to func(T) U) Decoder[U] {
	return func(c *Cursor, v value.Value) (U, bool) {
		out, ok := d(c, v)
		if !ok {
			var zero U
			return zero, false
		}
		return to(out), true
	}
}

// Reject records the error of a rule at the cursor, in pydantic's words.
func (c *Cursor) Reject(err error, input value.Value) {
	c.Report(Error{Type: "value_error", Msg: "Value error, " + err.Error(), Input: input, Err: err})
}

// Branch is one alternative of a [Union].
type Branch[T any] struct {
	tag string
	d   Decoder[T]
}

// As makes d a branch of a union. tag is what locations of its errors show,
// for example "str", "dict[str,float]" or a model's class name; wrap builds
// the union's value.
func As[S, T any](tag string, d Decoder[S], wrap func(S) T) Branch[T] {
	return Branch[T]{tag: tag, d: Convert(d, wrap)}
}

// Union decodes a value with the branch that has to bend it least, the first
// of equals. When no branch accepts it, the errors of all are reported.
func Union[T any](branches ...Branch[T]) Decoder[T] {
	return func(c *Cursor, v value.Value) (T, bool) {
		var best T
		var report Report
		var failures []Error
		found, bestExact := false, lax
		for _, branch := range branches {
			// Branches know no place above their own: most unions have a branch that
			// fails, and errors that nobody sees must not cost their whole path.
			trial := run{title: c.run.title, exact: exact, json: c.run.json}
			out, ok := branch.d(&Cursor{run: &trial}, v)
			if ok && (!found || trial.exact > bestExact) {
				best, found, bestExact, report = out, true, trial.exact, trial.report
			}
			if bestExact == exact {
				break
			}
			for _, e := range trial.errors {
				e.Loc = slices.Concat(Location{branch.tag}, e.Loc)
				failures = append(failures, e)
			}
		}
		if !found {
			for _, e := range failures {
				e.Loc = c.absolute(e.Loc)
				c.run.errors = append(c.run.errors, e)
			}
			return best, false
		}
		for _, loc := range report.Unknown {
			c.run.report.Unknown = append(c.run.report.Unknown, c.absolute(loc))
		}
		for _, w := range report.Warnings {
			w.Loc = c.absolute(w.Loc)
			c.run.report.Warnings = append(c.run.report.Warnings, w)
		}
		c.bend(bestExact)
		return best, true
	}
}

// absolute is a place below c as one of the whole document.
func (c *Cursor) absolute(loc Location) Location { return slices.Concat(c.Location(), loc) }
