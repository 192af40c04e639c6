// Package params reads the arguments of an action into a Go struct, whose fields
// are the action's parameters, and makes their JSON schema (CUBE, section 3.3).
package params

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/dump"
	"github.com/proctor-run/proctor/value"
)

var objectType = reflect.TypeFor[*value.Object]()

// Params are the parameters of an action.
type Params struct {
	input    typed.Struct
	required []string
	schema   *value.Object
}

// Of returns the parameters that the fields of a struct type are, or what is
// wrong with its declaration.
func Of(t reflect.Type) (*Params, error) {
	input, err := typed.StructOf(t)
	if err != nil {
		return nil, err
	}
	if err := input.CheckTagged(); err != nil {
		return nil, err
	}
	out := &Params{input: input}
	out.schema, out.required, err = objectSchema(input)
	return out, err
}

// objectSchema returns the JSON schema of a struct and the names of its required
// fields.
func objectSchema(s typed.Struct) (schema *value.Object, required []string, err error) {
	fields := s.Fields()
	properties := value.NewObject(len(fields))
	for _, f := range fields {
		property, err := property(f.Name, f.Go)
		if err != nil {
			return nil, nil, err
		}
		properties.Append(f.Name, property)
		_, hasDefault := f.Go.Tag.Lookup("default")
		if nullable := f.Go.Type.Kind() == reflect.Pointer && f.Go.Type != objectType; !hasDefault && !nullable {
			required = append(required, f.Name)
		}
	}
	schema = typed.Pairs("type", "object", "properties", properties)
	if len(required) > 0 {
		schema.Append("required", dump.Strs(required))
	}
	return schema, required, nil
}

// plainStruct returns the struct type behind a parameter's type, if it is a
// plain struct, whose fields a schema can name.
func plainStruct(t reflect.Type) (reflect.Type, bool) {
	if t == objectType || t.Implements(reflect.TypeFor[typed.Typed]()) {
		return nil, false
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || typed.IsObject(t) {
		return nil, false
	}
	return t, true
}

// addFields adds what is known of the fields of a plain struct to its schema.
func addFields(out *value.Object, t reflect.Type) error {
	s, err := typed.StructOf(t)
	if err != nil {
		return err
	}
	schema, _, err := objectSchema(s)
	if err != nil {
		return err
	}
	for k, v := range schema.All() {
		out.Set(k, v)
	}
	return nil
}

// property returns the schema of one parameter, keys in the format's order.
func property(name string, sf reflect.StructField) (*value.Object, error) {
	kind := goSchemaType(sf.Type)
	enum := sf.Tag.Get("enum")
	if doc, ok := sf.Tag.Lookup("type"); ok {
		var err error
		if kind, enum, err = docType(doc); err != nil {
			return nil, err
		}
	}
	if err := checkOptional(name, sf); err != nil {
		return nil, err
	}
	out := value.NewObject(4)
	if kind != "" {
		out.Append("type", value.Str(kind))
	}
	if desc := sf.Tag.Get("desc"); desc != "" {
		out.Append("description", value.Str(desc))
	}
	if enum != "" {
		out.Append("enum", dump.Strs(strings.Split(enum, ",")))
	}
	switch st, plain := plainStruct(sf.Type); {
	case kind == "array":
		items := value.NewObject(0)
		if sf.Type.Kind() == reflect.Slice || sf.Type.Kind() == reflect.Array {
			if st, plain := plainStruct(sf.Type.Elem()); plain {
				if err := addFields(items, st); err != nil {
					return nil, err
				}
			}
		}
		out.Append("items", items)
	case kind == "object" && plain:
		if err := addFields(out, st); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkOptional refuses a nullable parameter that is not null by default.
func checkOptional(name string, sf reflect.StructField) error {
	if sf.Type.Kind() != reflect.Pointer || sf.Type == objectType {
		return nil
	}
	python := pythonName(sf.Type.Elem())
	if strings.Contains(sf.Tag.Get("cube"), "required") {
		return exception.Errorf(exception.ValueError, "Parameter '%s' has type '%s | None' but has no default value. 'X | None' parameters must default to None.", name, python)
	}
	if def, ok := sf.Tag.Lookup("default"); ok && def != "null" {
		return exception.Errorf(exception.ValueError, "Parameter '%s' has type '%s | None' but default is %s, not None.", name, python, def)
	}
	return nil
}

// goSchemaType is the schema type of a Go type; a Value and an any have none.
func goSchemaType(t reflect.Type) string {
	if typed.IsObject(t) {
		return "object"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer"
	case reflect.Struct:
		return "object"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Pointer:
		return goSchemaType(t.Elem())
	case reflect.Interface:
		if t == reflect.TypeFor[value.Value]() || t.NumMethod() == 0 {
			return ""
		}
	}
	return "string"
}

func pythonName(t reflect.Type) string {
	switch goSchemaType(t) {
	case "boolean":
		return "bool"
	case "integer":
		return "int"
	case "number":
		return "float"
	case "array":
		return "list"
	case "object":
		return "dict"
	}
	return "str"
}

// docType reads the type tag: a type name, perhaps ", optional", "X | None", or
// a set of choices "{'a', 'b'}".
func docType(doc string) (kind, enum string, err error) {
	doc = strings.TrimSpace(doc)
	if inner, ok := strings.CutPrefix(doc, "{"); ok {
		inner, _, _ = strings.Cut(inner, "}")
		var names []string
		for choice := range strings.SplitSeq(inner, ",") {
			names = append(names, strings.Trim(strings.TrimSpace(choice), `'"`))
		}
		return "string", strings.Join(names, ","), nil
	}
	doc, _, _ = strings.Cut(doc, ",")
	var members []string
	for member := range strings.SplitSeq(doc, "|") {
		if member = strings.TrimSpace(member); member != "None" {
			members = append(members, member)
		}
	}
	if len(members) > 1 {
		return "", "", exception.Errorf(exception.ValueError, "Unsupported union type %s: only 'X | None' is supported.", strings.TrimSpace(doc))
	}
	name, _, _ := strings.Cut(strings.Join(members, ""), "[")
	return schemaType(name), "", nil
}

func schemaType(python string) string {
	switch python {
	case "int", "integer":
		return "integer"
	case "float", "number":
		return "number"
	case "bool", "boolean":
		return "boolean"
	case "list", "array":
		return "array"
	case "dict", "object":
		return "object"
	}
	return "string"
}

// Schema returns the JSON schema of the parameters, of kind object.
func (p *Params) Schema() *value.Object { return p.schema }

// ArgumentError is about arguments that do not fit. Its text is Python's: models
// are told what they did wrong.
type ArgumentError struct {
	error
	Why string // in the words of the later line of CUBE
}

// ErrorType returns "TypeError".
func (*ArgumentError) ErrorType() string { return exception.TypeError }

// Read turns arguments into a value of the struct type; nil is none. What does
// not fit is an [*ArgumentError]. call names the function in messages.
func (p *Params) Read(call string, args *value.Object) (reflect.Value, error) {
	missing := p.missing(args)
	extra, hasExtra := unexpected(p.schema, args)
	var why string
	switch {
	case len(missing) > 0:
		why = "missing a required argument: " + missing[0]
	case hasExtra:
		why = Unexpected(extra)
	}
	switch {
	case hasExtra:
		return reflect.Value{}, &ArgumentError{exception.Errorf(exception.TypeError, "%s %s", call, Unexpected(extra)), why}
	case len(missing) > 0:
		return reflect.Value{}, &ArgumentError{exception.Errorf(exception.TypeError, "%s missing %d required positional argument%s: %s",
			call, len(missing), plural(len(missing)), enumerate(missing)), why}
	}
	in, err := p.input.Read(args)
	if invalid, ok := errors.AsType[*typed.ValidationError](err); ok {
		first := invalid.Errors[0]
		why := fmt.Sprintf("argument %s: %s", quote(first.Loc.String()), first.Msg)
		return reflect.Value{}, &ArgumentError{exception.Errorf(exception.TypeError, "%s %s", call, why), why}
	}
	return in.Elem(), err
}

// Names returns the names of the parameters, in order.
func (p *Params) Names() []string {
	fields := p.input.Fields()
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.Name
	}
	return out
}

// missing returns the quoted names of required arguments that are not there.
func (p *Params) missing(args *value.Object) []string {
	var out []string
	for _, name := range p.required {
		if !args.Has(name) {
			out = append(out, quote(name))
		}
	}
	return out
}

// unexpected finds a key, at any depth, that the schema does not name: what an
// agent misspells must not be dropped silently.
func unexpected(schema *value.Object, v value.Value) (path string, found bool) {
	switch v := v.(type) {
	case value.List:
		items, _ := schema.Get("items")
		if items, ok := items.(*value.Object); ok {
			for i, item := range v {
				if path, found := unexpected(items, item); found {
					return fmt.Sprintf("%d.%s", i, path), true
				}
			}
		}
	case *value.Object:
		p, _ := schema.Get("properties")
		properties, ok := p.(*value.Object)
		if !ok {
			return "", false
		}
		for name, item := range v.All() {
			inner, ok := properties.Get(name)
			if !ok {
				return name, true
			}
			if path, found := unexpected(inner.(*value.Object), item); found {
				return name + "." + path, true
			}
		}
	}
	return "", false
}

// Unexpected is what agents are told about an argument that is not a parameter.
func Unexpected(name string) string { return "got an unexpected keyword argument " + quote(name) }

// quote is Python's repr of a string.
func quote(s string) string { return value.Repr(value.Str(s)) }

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// enumerate joins as Python does: a; a and b; a, b, and c.
func enumerate(items []string) string {
	switch n := len(items); n {
	case 1:
		return items[0]
	case 2:
		return items[0] + " and " + items[1]
	default:
		return strings.Join(items[:n-1], ", ") + ", and " + items[n-1]
	}
}
