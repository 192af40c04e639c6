// Package dump builds ordered documents out of Go values, the way pydantic
// dumps a model: every field in its place, absent values as null, and, where a
// format wants it, fields that are null left out.
//
//	o := dump.Object{}
//	o.Str("name", c.Name)
//	o.OptFloat("timeout_sec", c.TimeoutSec)
//	text := value.AppendPydantic(nil, o.Value(), 4)
package dump

import (
	"github.com/proctor-run/proctor/value"
)

// Object collects the fields of one model in order. The zero value is ready.
type Object struct {
	// OmitNull leaves out fields that are null. It does not reach into the
	// values of fields.
	OmitNull bool

	obj value.Object
}

// Value returns the document built so far.
func (o *Object) Value() *value.Object { return &o.obj }

// Set adds a field of any value; nil is null.
func (o *Object) Set(key string, v value.Value) {
	if v == nil {
		v = value.Null{}
	}
	if _, null := v.(value.Null); null && o.OmitNull {
		return
	}
	o.obj.Set(key, v)
}

// Str adds a text.
func (o *Object) Str(key, s string) { o.obj.Set(key, value.Str(s)) }

// OptStr adds a text or null.
func (o *Object) OptStr(key string, s *string) {
	if s == nil {
		o.Set(key, nil)
		return
	}
	o.Str(key, *s)
}

// Bool adds a boolean.
func (o *Object) Bool(key string, b bool) { o.obj.Set(key, value.Bool(b)) }

// Int adds an integer.
func (o *Object) Int(key string, n int) { o.obj.Set(key, value.NewInt(int64(n))) }

// OptInt adds an integer or null.
func (o *Object) OptInt(key string, n *int) {
	if n == nil {
		o.Set(key, nil)
		return
	}
	o.Int(key, *n)
}

// Float adds a float; integral ones keep their fraction when written.
func (o *Object) Float(key string, x float64) { o.obj.Set(key, value.Float(x)) }

// OptFloat adds a float or null.
func (o *Object) OptFloat(key string, x *float64) {
	if x == nil {
		o.Set(key, nil)
		return
	}
	o.Float(key, *x)
}

// Strs adds a list of texts; nil is an empty list.
func (o *Object) Strs(key string, list []string) { o.obj.Set(key, Strs(list)) }

// Dict adds a free-form table; nil is an empty one.
func (o *Object) Dict(key string, obj *value.Object) {
	if obj == nil {
		obj = &value.Object{}
	}
	o.obj.Set(key, obj)
}

// Strs returns a list of texts as a value.
func Strs(list []string) value.List {
	out := make(value.List, len(list))
	for i, s := range list {
		out[i] = value.Str(s)
	}
	return out
}

// List returns one value per item.
func List[T any](items []T, convert func(T) value.Value) value.List {
	out := make(value.List, len(items))
	for i, item := range items {
		out[i] = convert(item)
	}
	return out
}
