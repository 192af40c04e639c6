package cube

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// Options are what a [Registry] gives to the values it reads and makes. Nothing
// in a cube reads the environment.
type Options struct {
	// CacheRoot is where installed per-task data lies; benchmarks have a
	// directory each below it. Empty, nothing can be installed: the working
	// directory is never used.
	CacheRoot string
	// Sandbox runs the containers of [LocalContainerBackend] and
	// [LocalInfraConfig].
	Sandbox sandbox.Backend
	// Log takes what goes wrong where nothing can be returned; nil drops it.
	Log *slog.Logger
}

// Registry knows the types that may stand in a document, and the benchmarks.
// Reading instantiates registered types only. Add everything first; after that
// a Registry may be used from any number of goroutines.
type Registry struct {
	opts     Options
	byPath   map[string]*typeInfo
	byGo     map[reflect.Type]*typeInfo // by struct type
	families map[reflect.Type]*typeInfo // by interface type

	mu   sync.Mutex // guards defs: parametrised benchmarks are defined when they are selected
	defs map[definitionKey]*Definition
}

// typeInfo is a registered type.
type typeInfo struct {
	path string
	name string       // the last element of path
	typ  reflect.Type // a struct, or an interface when abstract
	plan *plan

	// Of task configs: the benchmark that they belong to and its directory.
	owner, ownerDir string
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

// NewRegistry returns a registry that knows the types of this package.
func NewRegistry(opts Options) *Registry {
	r := &Registry{
		opts:     opts,
		byPath:   map[string]*typeInfo{},
		byGo:     map[reflect.Type]*typeInfo{},
		families: map[reflect.Type]*typeInfo{},
		defs:     map[definitionKey]*Definition{},
	}
	r.addCore()
	return r
}

// Add registers types by a value of each; the values themselves are not kept.
// It reports all that is wrong with them: a name that is taken or is the
// base's, a field that no JSON can hold, a benchmark whose definition is
// incomplete. Adding a type again is fine.
func (r *Registry) Add(prototypes ...Typed) error {
	var errs []error
	for _, p := range prototypes {
		if err := r.addType(p); err != nil {
			errs = append(errs, fmt.Errorf("registering %T: %w", p, err))
		}
	}
	for _, p := range prototypes {
		cfg, ok := p.(BenchmarkConfig)
		if !ok || len(errs) > 0 {
			continue
		}
		if err := r.define(cfg); err != nil {
			errs = append(errs, fmt.Errorf("registering %T: %w", p, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Registry) addType(p Typed) error {
	t := reflect.TypeOf(p)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return TypeErrorf("not a pointer to a struct")
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
		return TypeErrorf("the name %q belongs to %s", path, known.typ)
	}
	info := &typeInfo{path: path, name: name, typ: t.Elem(), plan: plan}
	r.byPath[path] = info
	r.byGo[t.Elem()] = info
	return nil
}

func simpleName(path string) (string, error) {
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 {
		return "", TypeErrorf("the type name %q has no dot", path)
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
		return TypeErrorf("%s is not an interface", t)
	}
	if known := r.byPath[path]; known != nil && known.typ != t {
		return TypeErrorf("the name %q belongs to %s", path, known.typ)
	}
	r.addFamily(path, name, t)
	return nil
}

func (r *Registry) addFamily(path, name string, t reflect.Type) {
	info := &typeInfo{path: path, name: name, typ: t}
	r.byPath[path] = info
	r.families[t] = info
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

func (r *Registry) log() *slog.Logger {
	if r.opts.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.opts.Log
}

// Names returns the registered type names, unordered.
func (r *Registry) Names() []string {
	out := make([]string, 0, len(r.byPath))
	for path := range r.byPath {
		out = append(out, path)
	}
	return out
}

// Load reads a typed object of type T from JSON: T is an interface of a family
// ([TaskConfig], [ToolConfig], [Content], …) or a pointer to a registered
// struct. Without _type the object is read as exactly T. A document that does
// not fit gives a [*ValidationError] with the JSON path of every mistake.
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
func FromValue[T Typed](r *Registry, v Value) (T, error) {
	var zero T
	t := reflect.TypeFor[T]()
	declared := r.families[t]
	if t.Kind() == reflect.Pointer {
		declared = r.byGo[t.Elem()]
	}
	if declared == nil {
		return zero, TypeErrorf("%s is not registered", t)
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
		return zero, TypeErrorf("%T does not embed %s", out, t)
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
		return nil, TypeErrorf("%q is not registered", declared)
	}
	v, err := value.Decode(data)
	if err != nil {
		return nil, err
	}
	return r.load(info, v)
}

func (r *Registry) load(declared *typeInfo, v Value) (Typed, error) {
	d := &decoder{reg: r}
	ptr := d.load(declared, v)
	if err := d.err(declared.path); err != nil {
		return nil, err
	}
	return ptr.Interface().(Typed), nil
}

// load reads an object where a declared type is expected. It returns the
// invalid Value when it reported errors.
func (d *decoder) load(declared *typeInfo, v Value) reflect.Value {
	obj, ok := v.(*Object)
	if !ok {
		d.fail("model_type", "Input should be an object")
		return reflect.Value{}
	}
	info := d.resolve(declared, obj)
	if info == nil {
		return reflect.Value{}
	}
	before := len(d.errs)
	ptr := reflect.New(info.typ)
	d.fill(info.plan, obj, ptr.Elem())
	if len(d.errs) > before {
		return reflect.Value{}
	}
	if b, ok := ptr.Interface().(binder); ok {
		b.bind(d.reg, ptr.Interface().(Typed))
	}
	if c, ok := ptr.Interface().(validator); ok {
		if err := c.Validate(); err != nil {
			d.failWith("value_error", err)
			return reflect.Value{}
		}
	}
	return ptr
}

// binder is a type of this package that keeps what the registry offers.
type binder interface {
	bind(r *Registry, whole Typed)
}

func (d *decoder) fill(p *plan, obj *Object, dst reflect.Value) {
	p.init(dst)
	for i := range p.fields {
		f := &p.fields[i]
		v, ok := obj.Get(f.name)
		if !ok {
			if f.required {
				d.enter(f.name)
				d.fail("missing", "Field required")
				d.leave()
			}
			continue
		}
		d.enter(f.name)
		f.codec.dec(d, v, dst.FieldByIndex(f.index))
		d.leave()
	}
}

// resolve picks the concrete type of an object (CUBE, section 1.1).
func (d *decoder) resolve(declared *typeInfo, obj *Object) *typeInfo {
	tag, ok := obj.Get(typeKey)
	if !ok {
		if declared.abstract() {
			d.failAbstract(declared)
			return nil
		}
		return declared
	}
	path, isText := tag.(Str)
	info := d.reg.byPath[string(path)]
	switch {
	case !isText || info == nil || !info.derives(declared):
		err := &UnknownTypeError{Path: text(tag), Declared: declared.name}
		d.failWith("value_error", err)
		return nil
	case info.abstract() && info == declared:
		d.failWith("value_error", TypeErrorf("Can't instantiate abstract class %s: name a concrete type, not %q", info.name, info.path))
		return nil
	case info.abstract():
		d.failAbstract(info)
		return nil
	}
	return info
}

func (d *decoder) failAbstract(t *typeInfo) {
	d.failWith("value_error", ValueErrorf("Cannot deserialize abstract class '%s' directly. Ensure the input dict includes a '_type' field naming a concrete subclass.", t.name))
}
