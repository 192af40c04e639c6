package cube

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// params are the parameters of a declared action: how to read them and what
// their JSON schema is (CUBE, section 3.3).
type params struct {
	plan     *plan
	required []string
	schema   *Object
}

func paramsOf(t reflect.Type) (*params, error) {
	if t.Kind() == reflect.Struct {
		if err := checkTagged(t); err != nil {
			return nil, err
		}
	}
	p, err := planOf(t)
	if err != nil {
		return nil, err
	}
	out := &params{plan: p}
	out.schema, out.required, err = objectSchema(t, p)
	return out, err
}

// objectSchema returns the JSON schema of a struct and the names of its required
// fields.
func objectSchema(t reflect.Type, p *plan) (schema *Object, required []string, err error) {
	properties := value.NewObject(len(p.fields))
	for _, f := range p.fields {
		sf := t.FieldByIndex(f.index)
		property, err := property(f.name, sf)
		if err != nil {
			return nil, nil, err
		}
		properties.Append(f.name, property)
		_, hasDefault := sf.Tag.Lookup("default")
		if nullable := sf.Type.Kind() == reflect.Pointer && sf.Type != objectType; !hasDefault && !nullable {
			required = append(required, f.name)
		}
	}
	schema = Pairs("type", "object", "properties", properties)
	if len(required) > 0 {
		schema.Append("required", mustValue(required))
	}
	return schema, required, nil
}

// plainStruct returns the struct type behind a parameter's type, if it is a
// plain struct, whose fields a schema can name.
func plainStruct(t reflect.Type) (reflect.Type, bool) {
	if t == objectType || t.Implements(typedType) {
		return nil, false
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(customType) {
		return nil, false
	}
	return t, true
}

// addFields adds what is known of the fields of a plain struct to its schema.
func addFields(out *Object, t reflect.Type) error {
	p, err := planOf(t)
	if err != nil {
		return err
	}
	schema, _, err := objectSchema(t, p)
	if err != nil {
		return err
	}
	for k, v := range schema.All() {
		out.Set(k, v)
	}
	return nil
}

func mustValue(v any) Value {
	out, err := ValueOf(v)
	if err != nil {
		panic(err)
	}
	return out
}

// property returns the schema of one parameter, keys in the format's order.
func property(name string, sf reflect.StructField) (*Object, error) {
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
		out.Append("type", Str(kind))
	}
	if desc := sf.Tag.Get("desc"); desc != "" {
		out.Append("description", Str(desc))
	}
	if enum != "" {
		out.Append("enum", mustValue(strings.Split(enum, ",")))
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
		return ValueErrorf("Parameter '%s' has type '%s | None' but has no default value. 'X | None' parameters must default to None.", name, python)
	}
	if def, ok := sf.Tag.Lookup("default"); ok && def != "null" {
		return ValueErrorf("Parameter '%s' has type '%s | None' but default is %s, not None.", name, python, def)
	}
	return nil
}

// goSchemaType is the schema type of a Go type; a Value and an any have none.
func goSchemaType(t reflect.Type) string {
	if t == objectType || reflect.PointerTo(t).Implements(customType) {
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
		if t == valueType || t.NumMethod() == 0 {
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
		return "", "", ValueErrorf("Unsupported union type %s: only 'X | None' is supported.", strings.TrimSpace(doc))
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

// read turns arguments into the function's input. What does not fit is a
// TypeError in Python's words: models are told what they did wrong.
func (p *params) read(call string, args *Object) (reflect.Value, error) {
	for name := range args.All() {
		if !p.has(name) {
			return reflect.Value{}, TypeErrorf("%s got an unexpected keyword argument %s", call, quote(name))
		}
	}
	var missing []string
	for _, name := range p.required {
		if !args.Has(name) {
			missing = append(missing, quote(name))
		}
	}
	if len(missing) > 0 {
		return reflect.Value{}, TypeErrorf("%s missing %d required positional argument%s: %s",
			call, len(missing), plural(len(missing)), enumerate(missing))
	}
	if name, ok := unexpected(p.schema, args); ok {
		return reflect.Value{}, TypeErrorf("%s got an unexpected keyword argument %s", call, quote(name))
	}
	in := reflect.New(p.plan.typ).Elem()
	p.plan.init(in)
	d := &decoder{}
	for i := range p.plan.fields {
		f := &p.plan.fields[i]
		if v, ok := args.Get(f.name); ok {
			d.enter(f.name)
			f.codec.dec(d, v, in.FieldByIndex(f.index))
			d.leave()
		}
	}
	if len(d.errs) > 0 {
		return reflect.Value{}, TypeErrorf("%s argument %s: %s", call, quote(d.errs[0].Loc.String()), d.errs[0].Msg)
	}
	return in, nil
}

// unexpected finds a key, at any depth, that the schema does not name: what an
// agent misspells must not be dropped silently.
func unexpected(schema *Object, v Value) (path string, found bool) {
	switch v := v.(type) {
	case List:
		items, _ := schema.Get("items")
		if items, ok := items.(*Object); ok {
			for i, item := range v {
				if path, found := unexpected(items, item); found {
					return fmt.Sprintf("%d.%s", i, path), true
				}
			}
		}
	case *Object:
		p, _ := schema.Get("properties")
		properties, ok := p.(*Object)
		if !ok {
			return "", false
		}
		for name, item := range v.All() {
			inner, ok := properties.Get(name)
			if !ok {
				return name, true
			}
			if path, found := unexpected(inner.(*Object), item); found {
				return name + "." + path, true
			}
		}
	}
	return "", false
}

func (p *params) has(name string) bool {
	for i := range p.plan.fields {
		if p.plan.fields[i].name == name {
			return true
		}
	}
	return false
}

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
