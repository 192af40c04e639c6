package typed

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// plan is how a struct type is read and written.
type plan struct {
	typ    reflect.Type
	fields []field
	// embeds leads to every embedded struct; the type itself has an empty path.
	embeds map[reflect.Type][]int
	// zero holds the defaults that can be copied by assignment.
	zero reflect.Value
	// fresh are the fields whose default has to be made anew each time.
	fresh []int
}

type field struct {
	name     string
	index    []int
	codec    codec
	required bool
	def      value.Value // nil: the type's zero value
}

// codec reads and writes one Go type.
type codec struct {
	dec decode
	enc func(e *encoder, v reflect.Value) value.Value
}

// decode reads a value into dst, which is as it was or the type's default. It
// reports what is wrong at the cursor and then returns false. r knows the types
// of slots and may be nil.
type decode func(r *Registry, c *schema.Cursor, v value.Value, dst reflect.Value) bool

// into returns a decoder of new values of a type.
func (d decode) into(t reflect.Type, r *Registry) schema.Decoder[reflect.Value] {
	return func(c *schema.Cursor, v value.Value) (reflect.Value, bool) {
		dst := reflect.New(t).Elem()
		ok := d(r, c, v, dst)
		return dst, ok
	}
}

// plans remembers what planOf found out about a type; entries never change.
var plans sync.Map

type planResult struct {
	plan *plan
	err  error
}

// planOf returns the plan of a struct type, or says why it cannot be a typed
// object.
func planOf(t reflect.Type) (*plan, error) {
	if known, ok := plans.Load(t); ok {
		r := known.(planResult)
		return r.plan, r.err
	}
	p, err := newPlan(t)
	known, _ := plans.LoadOrStore(t, planResult{p, err})
	r := known.(planResult)
	return r.plan, r.err
}

func newPlan(t reflect.Type) (*plan, error) {
	if t.Kind() != reflect.Struct {
		return nil, exception.Errorf(exception.TypeError, "%s is not a struct", t)
	}
	p := &plan{typ: t, embeds: map[reflect.Type][]int{t: {}}}
	if err := errors.Join(p.collect(t, nil), checkOwnName(t, p)); err != nil {
		return nil, err
	}
	return p, p.setDefaults()
}

// checkOwnName refuses a type that has its base's TypeName by embedding only:
// its data would be written under the base's name and its fields lost.
func checkOwnName(t reflect.Type, p *plan) error {
	own, ok := reflect.New(t).Interface().(Typed)
	if !ok {
		return nil
	}
	for base := range p.embeds {
		if base == t {
			continue
		}
		if b, ok := reflect.New(base).Interface().(Typed); ok && b.TypeName() == own.TypeName() {
			return exception.Errorf(exception.TypeError, "%s has the TypeName of the %s it embeds: declare func (*%s) TypeName() string", t, base, t.Name())
		}
	}
	return nil
}

// collect adds the fields of a type. The error has all that cannot be fields.
func (p *plan) collect(t reflect.Type, prefix []int) error {
	var errs []error
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(slices.Clone(prefix), i)
		tag, tagged := sf.Tag.Lookup("json")
		if sf.Anonymous && !tagged {
			if sf.Type.Kind() != reflect.Struct { // an unexported struct may have exported fields
				continue
			}
			p.embeds[sf.Type] = index
			errs = append(errs, p.collect(sf.Type, index))
			continue
		}
		name, _, _ := strings.Cut(tag, ",")
		if !sf.IsExported() || name == "-" || name == "" {
			continue
		}
		f, err := newField(name, sf)
		if err != nil {
			errs = append(errs, fmt.Errorf("field %s of %s: %w", sf.Name, t, err))
			continue
		}
		f.index = index
		p.add(f)
	}
	return errors.Join(errs...)
}

// add puts a field at the end, or in the place of an earlier one that it
// redeclares.
func (p *plan) add(f field) {
	for i := range p.fields {
		if p.fields[i].name == f.name {
			p.fields[i] = f
			return
		}
	}
	p.fields = append(p.fields, f)
}

func (p *plan) setDefaults() error {
	p.zero = reflect.New(p.typ).Elem()
	for i := range p.fields {
		f := &p.fields[i]
		if f.def == nil {
			continue
		}
		dst := p.zero.FieldByIndex(f.index)
		def, _, err := schema.ValidateJSON(f.def, f.codec.dec.into(dst.Type(), nil))
		if err != nil {
			return exception.Errorf(exception.TypeError, "default of field %q of %s: %w", f.name, p.typ, Invalid(p.typ.String(), err))
		}
		dst.Set(def)
		switch dst.Kind() {
		case reflect.Slice, reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Map:
			dst.SetZero()
			if value.Truth(f.def) {
				p.fresh = append(p.fresh, i)
			}
		}
	}
	return nil
}

// init gives a struct the defaults of its fields.
func (p *plan) init(v reflect.Value) {
	v.Set(p.zero)
	for _, i := range p.fresh {
		dst := v.FieldByIndex(p.fields[i].index)
		def, _, err := schema.ValidateJSON(p.fields[i].def, p.fields[i].codec.dec.into(dst.Type(), nil))
		if err == nil { // setDefaults has read each once
			dst.Set(def)
		}
	}
}

// model reads an object into dst, a struct that is addressable; partial, without
// asking for required fields. name is the struct's name in messages.
func (p *plan) model(r *Registry, name string, partial bool, dst reflect.Value) schema.Decoder[reflect.Value] {
	return schema.Model(name, func(f *schema.Fields) reflect.Value {
		p.init(dst)
		f.Ignore(TypeKey)
		for i := range p.fields {
			field := &p.fields[i]
			f.Decode(field.name, field.required && !partial, func(c *schema.Cursor, v value.Value) bool {
				return field.codec.dec(r, c, v, dst.FieldByIndex(field.index))
			})
		}
		return dst
	})
}

// fieldTag is what the tags of a field say.
type fieldTag struct {
	enum     []string
	options  []string
	def      string
	hasDef   bool
	nullable bool
}

func (t fieldTag) has(option string) bool { return slices.Contains(t.options, option) }

func newField(name string, sf reflect.StructField) (field, error) {
	var tag fieldTag
	if list := sf.Tag.Get("enum"); list != "" {
		tag.enum = strings.Split(list, ",")
	}
	tag.options = strings.Split(sf.Tag.Get("cube"), ",")
	tag.def, tag.hasDef = sf.Tag.Lookup("default")
	tag.nullable = tag.has("nullable")
	c, err := codecOf(sf.Type, tag)
	if err != nil {
		return field{}, err
	}
	f := field{name: name, codec: c}
	if tag.hasDef {
		if f.def, err = defaultValue(sf.Type, tag.def); err != nil {
			return field{}, err
		}
		return f, nil
	}
	kind := sf.Type.Kind()
	optional := kind == reflect.Pointer || kind == reflect.Interface || tag.nullable || tag.has("optional")
	f.required = !optional || tag.has("required")
	return f, nil
}

func defaultValue(t reflect.Type, text string) (value.Value, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.String {
		return value.Str(text), nil
	}
	v, err := value.DecodeText(text)
	if err != nil {
		return nil, exception.Errorf(exception.TypeError, "default %q is not JSON: %w", text, err)
	}
	return v, nil
}
