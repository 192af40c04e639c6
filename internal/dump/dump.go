// Package dump builds ordered documents out of Go values, the way pydantic
// dumps a model: every field in its place, absent values as null, and, where a
// format wants it, fields that are null left out.
//
//	o := dump.Object{}
//	o.Str("name", c.Name)
//	o.OptFloat("timeout_sec", c.TimeoutSec)
//	text := pyvalue.AppendPydantic(nil, o.Value(), 4)
package dump

import (
	"github.com/proctor-run/proctor/internal/pyvalue"
)

// Object collects the fields of one model in order. The zero value is ready.
type Object struct {
	// OmitNull leaves out fields that are null. It does not reach into the
	// values of fields.
	OmitNull bool

	obj pyvalue.Object
}

// Value returns the document built so far.
func (o *Object) Value() *pyvalue.Object { return &o.obj }

// Set adds a field of any value; nil is null.
func (o *Object) Set(key string, v pyvalue.Value) {
	if v == nil {
		v = pyvalue.Null{}
	}
	if _, null := v.(pyvalue.Null); null && o.OmitNull {
		return
	}
	o.obj.Set(key, v)
}

// Str adds a text.
func (o *Object) Str(key, s string) { o.obj.Set(key, pyvalue.Str(s)) }

// OptStr adds a text or null.
func (o *Object) OptStr(key string, s *string) {
	if s == nil {
		o.Set(key, nil)
		return
	}
	o.Str(key, *s)
}

// Bool adds a boolean.
func (o *Object) Bool(key string, b bool) { o.obj.Set(key, pyvalue.Bool(b)) }

// Int adds an integer.
func (o *Object) Int(key string, n int) { o.obj.Set(key, pyvalue.NewInt(int64(n))) }

// OptInt adds an integer or null.
func (o *Object) OptInt(key string, n *int) {
	if n == nil {
		o.Set(key, nil)
		return
	}
	o.Int(key, *n)
}

// Float adds a float; integral ones keep their fraction when written.
func (o *Object) Float(key string, x float64) { o.obj.Set(key, pyvalue.Float(x)) }

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
func (o *Object) Dict(key string, obj *pyvalue.Object) {
	if obj == nil {
		obj = &pyvalue.Object{}
	}
	o.obj.Set(key, obj)
}

// Strs returns a list of texts as a value.
func Strs(list []string) pyvalue.List {
	out := make(pyvalue.List, len(list))
	for i, s := range list {
		out[i] = pyvalue.Str(s)
	}
	return out
}

// List returns one value per item.
func List[T any](items []T, value func(T) pyvalue.Value) pyvalue.List {
	out := make(pyvalue.List, len(items))
	for i, item := range items {
		out[i] = value(item)
	}
	return out
}
