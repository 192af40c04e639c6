package cube

import (
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
	p, err := planOf(t)
	if err != nil {
		return nil, err
	}
	out := &params{plan: p}
	properties := value.NewObject(len(p.fields))
	for _, f := range p.fields {
		sf := t.FieldByIndex(f.index)
		property, err := property(f.name, sf)
		if err != nil {
			return nil, err
		}
		properties.Append(f.name, property)
		_, hasDefault := sf.Tag.Lookup("default")
		if nullable := sf.Type.Kind() == reflect.Pointer && sf.Type != objectType; !hasDefault && !nullable {
			out.required = append(out.required, f.name)
		}
	}
	out.schema = Pairs("type", "object", "properties", properties)
	if len(out.required) > 0 {
		out.schema.Append("required", mustValue(out.required))
	}
	return out, nil
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
	if kind == "array" {
		out.Append("items", value.NewObject(0))
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

// goSchemaType is the schema type of a Go type; a Value has none.
func goSchemaType(t reflect.Type) string {
	if t == objectType || reflect.PointerTo(t).Implements(customType) {
		return "object"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Pointer:
		return goSchemaType(t.Elem())
	case reflect.Interface:
		if t == valueType {
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
