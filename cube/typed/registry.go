package typed

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Registry knows the types that may stand in a document. Reading instantiates
// registered types only. Add everything first; after that a Registry may be used
// from any number of goroutines.
type Registry struct {
	attach   func(Typed)
	byPath   map[string]*typeInfo
	byGo     map[reflect.Type]*typeInfo // by struct type
	families map[reflect.Type]*typeInfo // by interface type
}

// typeInfo is a registered type.
type typeInfo struct {
	path string
	name string       // the last element of path
	typ  reflect.Type // a struct, or an interface when abstract
	plan *plan
}

func (t *typeInfo) abstract() bool { return t.plan == nil }

// derives reports whether t is base or one of its subtypes.
func (t *typeInfo) derives(base *typeInfo) bool {
	if t == base || base.typ == typedType {
		return true
	}
	if !base.abstract() {
		if t.abstract() {
			return false
		}
		_, ok := t.plan.embeds[base.typ]
		return ok
	}
	if t.abstract() {
		return t.typ.Implements(base.typ)
	}
	return reflect.PointerTo(t.typ).Implements(base.typ)
}

// NewRegistry returns a registry without types. attach, unless it is nil, is
// called with every object that has been read, before its Validate: to give it
// what no document can hold.
func NewRegistry(attach func(Typed)) *Registry {
	return &Registry{
		attach:   attach,
		byPath:   map[string]*typeInfo{},
		byGo:     map[reflect.Type]*typeInfo{},
		families: map[reflect.Type]*typeInfo{},
	}
}

// Add registers types by a value of each; the values themselves are not kept.
// It reports all that is wrong with them: a name that is taken or is the
// base's, a field that no JSON can hold. Adding a type again is fine.
func (r *Registry) Add(prototypes ...Typed) error {
	var errs []error
	for _, p := range prototypes {
		if err := r.addType(p); err != nil {
			errs = append(errs, fmt.Errorf("registering %T: %w", p, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Registry) addType(p Typed) error {
	t := reflect.TypeOf(p)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return exception.Errorf(exception.TypeError, "not a pointer to a struct")
	}
	path := p.TypeName()
	name, err := simpleName(path)
	if err != nil {
		return err
	}
	plan, err := planOf(t.Elem())
	if err != nil {
		return err
	}
	if known := r.byPath[path]; known != nil {
		if known.typ == t.Elem() {
			return nil
		}
		return exception.Errorf(exception.TypeError, "the name %q belongs to %s", path, known.typ)
	}
	info := &typeInfo{path: path, name: name, typ: t.Elem(), plan: plan}
	r.byPath[path] = info
	r.byGo[t.Elem()] = info
	return nil
}

func simpleName(path string) (string, error) {
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 {
		return "", exception.Errorf(exception.TypeError, "the type name %q has no dot", path)
	}
	return path[dot+1:], nil
}

// AddFamily registers an interface as an abstract type, so that fields of that
// interface type can be read. F is the interface; it should include [Typed].
func AddFamily[F any](r *Registry, path string) error {
	t := reflect.TypeFor[F]()
	name, err := simpleName(path)
	if err != nil {
		return err
	}
	if t.Kind() != reflect.Interface {
		return exception.Errorf(exception.TypeError, "%s is not an interface", t)
	}
	if known := r.byPath[path]; known != nil && known.typ != t {
		return exception.Errorf(exception.TypeError, "the name %q belongs to %s", path, known.typ)
	}
	info := &typeInfo{path: path, name: name, typ: t}
	r.byPath[path] = info
	r.families[t] = info
	return nil
}

// AddSlot lets fields of the interface type F hold a registered struct B and its
// subtypes, and reads an object without _type as a B.
func AddSlot[F, B any](r *Registry) error {
	base := r.byGo[reflect.TypeFor[B]()]
	if base == nil {
		return exception.Errorf(exception.TypeError, "%s is not registered", reflect.TypeFor[B]())
	}
	r.families[reflect.TypeFor[F]()] = base
	return nil
}

// family returns the declared type of a slot of an interface type.
func (r *Registry) family(t reflect.Type) *typeInfo {
	if r == nil {
		return nil
	}
	return r.families[t]
}

func (r *Registry) typeOf(t reflect.Type) *typeInfo {
	if r == nil {
		return nil
	}
	return r.byGo[t]
}

// Names returns the registered type names, unordered.
func (r *Registry) Names() []string {
	out := make([]string, 0, len(r.byPath))
	for path := range r.byPath {
		out = append(out, path)
	}
	return out
}

// Has reports whether the struct type that v points to is registered.
func (r *Registry) Has(v Typed) bool {
	t := reflect.TypeOf(v)
	return t != nil && t.Kind() == reflect.Pointer && r.byGo[t.Elem()] != nil
}

// ClassName returns the simple name of a registered type, the end of its path.
func (r *Registry) ClassName(path string) (string, bool) {
	info := r.byPath[path]
	if info == nil {
		return "", false
	}
	return info.name, true
}

// Load reads a typed object of type T from JSON: T is an interface of a family
// or a pointer to a registered struct. Without _type the object is read as
// exactly T. A document that does not fit gives a [*ValidationError] with the JSON path of every mistake.
func Load[T Typed](r *Registry, data []byte) (T, error) {
	var zero T
	v, err := value.Decode(data)
	if err != nil {
		return zero, err
	}
	return FromValue[T](r, v)
}

// FromValue is [Load] from a value that has been parsed already. The value is
// not changed.
func FromValue[T Typed](r *Registry, v value.Value) (T, error) {
	var zero T
	t := reflect.TypeFor[T]()
	declared := r.families[t]
	if t.Kind() == reflect.Pointer {
		declared = r.byGo[t.Elem()]
	}
	if declared == nil {
		return zero, exception.Errorf(exception.TypeError, "%s is not registered", t)
	}
	out, err := r.load(declared, v)
	if err != nil {
		return zero, err
	}
	if typed, ok := out.(T); ok {
		return typed, nil
	}
	base, ok := embeddedIn(reflect.ValueOf(out), t.Elem())
	if !ok {
		return zero, exception.Errorf(exception.TypeError, "%T does not embed %s", out, t)
	}
	if l, ok := base.Interface().(linked); ok {
		l.subtypeLink().outer = out
	}
	return base.Interface().(T), nil
}

// LoadAs is [Load] for a type known by its name only.
func (r *Registry) LoadAs(declared string, data []byte) (Typed, error) {
	info := r.byPath[declared]
	if info == nil {
		return nil, exception.Errorf(exception.TypeError, "%q is not registered", declared)
	}
	v, err := value.Decode(data)
	if err != nil {
		return nil, err
	}
	return r.load(info, v)
}

func (r *Registry) load(declared *typeInfo, v value.Value) (Typed, error) {
	ptr, _, err := schema.ValidateJSON(v, func(c *schema.Cursor, v value.Value) (reflect.Value, bool) {
		return r.read(c, declared, v)
	})
	if err != nil {
		return nil, Invalid(declared.path, err)
	}
	return ptr.Interface().(Typed), nil
}

// read returns a pointer to what stands where a declared type is expected.
func (r *Registry) read(c *schema.Cursor, declared *typeInfo, v value.Value) (reflect.Value, bool) {
	obj, ok := v.(*value.Object)
	if !ok {
		return schema.Model[reflect.Value](declared.name, nil)(c, v) // says so
	}
	info, err := r.resolve(declared, obj)
	if err != nil {
		c.Reject(err, v)
		return reflect.Value{}, false
	}
	ptr := reflect.New(info.typ)
	model := info.plan.model(r, info.name, false, ptr.Elem())
	_, ok = schema.After(model, func(reflect.Value) (reflect.Value, error) { return ptr, r.finish(ptr) })(c, v)
	return ptr, ok
}

// finish attaches what no document holds, and lets the object check itself.
func (r *Registry) finish(ptr reflect.Value) error {
	if r.attach != nil {
		r.attach(ptr.Interface().(Typed))
	}
	if c, ok := ptr.Interface().(validator); ok {
		return c.Validate()
	}
	return nil
}

// resolve picks the concrete type of an object (CUBE, section 1.1).
func (r *Registry) resolve(declared *typeInfo, obj *value.Object) (*typeInfo, error) {
	tag, ok := obj.Get(TypeKey)
	if !ok {
		if declared.abstract() {
			return nil, abstractError(declared)
		}
		return declared, nil
	}
	path, isText := tag.(value.Str)
	info := r.byPath[string(path)]
	switch {
	case !isText || info == nil || !info.derives(declared):
		return nil, &UnknownTypeError{Path: value.Text(tag), Declared: declared.name}
	case info.abstract() && info == declared:
		return nil, exception.Errorf(exception.TypeError, "Can't instantiate abstract class %s: name a concrete type, not %q", info.name, info.path)
	case info.abstract():
		return nil, abstractError(info)
	}
	return info, nil
}

func abstractError(t *typeInfo) error {
	return exception.Errorf(exception.ValueError, "Cannot deserialize abstract class '%s' directly. Ensure the input dict includes a '_type' field naming a concrete subclass.", t.name)
}
