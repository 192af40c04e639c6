package typed

import (
	"reflect"

	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Struct is how a struct type is read: its fields with a json tag, as [Typed]
// describes them. The struct need not be a typed object itself.
type Struct struct{ plan *plan }

// Field is one field of a [Struct].
type Field struct {
	Name string // in documents
	Go   reflect.StructField
}

// StructOf returns the fields of a struct type, or why it cannot be read.
func StructOf(t reflect.Type) (Struct, error) {
	p, err := planOf(t)
	return Struct{p}, err
}

// CheckTagged refuses fields that would be neither written nor read. A field
// says with json:"-" that this is wanted.
func (s Struct) CheckTagged() error { return checkTagged(s.plan.typ) }

// Fields returns the fields in the order of documents.
func (s Struct) Fields() []Field {
	out := make([]Field, len(s.plan.fields))
	for i, f := range s.plan.fields {
		out[i] = Field{f.name, s.plan.typ.FieldByIndex(f.index)}
	}
	return out
}

// Has reports whether there is a field of the name.
func (s Struct) Has(name string) bool {
	for i := range s.plan.fields {
		if s.plan.fields[i].name == name {
			return true
		}
	}
	return false
}

// New returns a pointer to a new struct whose fields have the defaults of their
// tags.
func (s Struct) New() reflect.Value {
	ptr := reflect.New(s.plan.typ)
	s.plan.init(ptr.Elem())
	return ptr
}

// Read returns a pointer to a new struct with the fields that obj has; the
// others have their defaults, whether they are required or not. The error is a
// [*ValidationError].
func (s Struct) Read(obj *value.Object) (reflect.Value, error) {
	ptr := reflect.New(s.plan.typ)
	name := s.plan.typ.String()
	_, _, err := schema.ValidateJSON(value.Value(obj), s.plan.model(nil, name, true, ptr.Elem()))
	return ptr, Invalid(name, err)
}

// IsObject reports whether fields of a Go type are objects in documents whose
// keys are free.
func IsObject(t reflect.Type) bool {
	ptr := reflect.PointerTo(t)
	return t == objectType || ptr.Implements(customType) || ptr.Implements(mappingType)
}
