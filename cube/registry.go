package cube

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"

	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/sandbox"
)

// Options are what a [Registry] gives to the values it reads and makes. Nothing
// in a cube reads the environment.
type Options struct {
	// CacheRoot is where installed per-task data lies; benchmarks have a
	// directory each below it. Empty, nothing can be installed: the working
	// directory is never used.
	CacheRoot string
	// Sandbox runs the containers of [infra.LocalContainerBackend] and
	// [infra.LocalInfraConfig].
	Sandbox sandbox.Backend
	// Log takes what goes wrong where nothing can be returned; nil drops it.
	Log *slog.Logger
}

// Registry knows the types that may stand in a document, and the benchmarks.
// Reading instantiates registered types only. Add everything first; after that
// a Registry may be used from any number of goroutines.
type Registry struct {
	opts   Options
	types  *typed.Registry
	owners map[reflect.Type]owner // by task config type

	mu   sync.Mutex // guards defs: parametrised benchmarks are defined when they are selected
	defs map[definitionKey]*Definition
}

// owner is the benchmark that task configs belong to, and its directory.
type owner struct{ benchmark, dir string }

// NewRegistry returns a registry that knows the types of this package and of
// package infra.
func NewRegistry(opts Options) *Registry {
	r := &Registry{opts: opts, owners: map[reflect.Type]owner{}, defs: map[definitionKey]*Definition{}}
	r.types = typed.NewRegistry(r.attach)
	r.addCore()
	return r
}

// binder is a type of this package that keeps what the registry offers.
type binder interface {
	bind(r *Registry, whole Typed)
}

// attach completes what has been read.
func (r *Registry) attach(v Typed) {
	if b, ok := v.(binder); ok {
		b.bind(r, v)
	}
	infra.Attach(v, r.host())
}

func (r *Registry) host() infra.Host {
	return infra.Host{Sandbox: r.opts.Sandbox, CacheRoot: r.opts.CacheRoot}
}

// NewLocalInfra returns this machine with what the registry was given.
func (r *Registry) NewLocalInfra() *infra.LocalInfraConfig { return infra.NewLocal(r.host()) }

// Add registers types by a value of each; the values themselves are not kept.
// It reports all that is wrong with them: a name that is taken or is the
// base's, a field that no JSON can hold, a benchmark whose definition is
// incomplete. Adding a type again is fine.
func (r *Registry) Add(prototypes ...Typed) error {
	if err := r.types.Add(prototypes...); err != nil {
		return err
	}
	var errs []error
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

// NewPresets keeps copies of canonical configs by name (CUBE, section 1.7); their
// types must be registered:
//
//	p, err := cube.NewPresets(r, map[string]cube.ToolConfig{"calm": &ToolConfig{Pace: 1}})
//	config, err := p.Get("calm")
func NewPresets[T Typed](r *Registry, configs map[string]T) (*Presets[T], error) {
	return typed.NewPresets(r.types, configs)
}

// AddFamily registers an interface as an abstract type, so that fields of that
// interface type can be read. F is the interface; it should include [Typed].
func AddFamily[F any](r *Registry, path string) error { return typed.AddFamily[F](r.types, path) }

func (r *Registry) log() *slog.Logger {
	if r.opts.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.opts.Log
}

// Names returns the registered type names, unordered.
func (r *Registry) Names() []string { return r.types.Names() }

// Load reads a typed object of type T from JSON: T is an interface of a family
// ([TaskConfig], [ToolConfig], [Content], …) or a pointer to a registered
// struct. Without _type the object is read as exactly T. A document that does
// not fit gives a [*ValidationError] with the JSON path of every mistake.
func Load[T Typed](r *Registry, data []byte) (T, error) { return typed.Load[T](r.types, data) }

// FromValue is [Load] from a value that has been parsed already. The value is
// not changed.
func FromValue[T Typed](r *Registry, v Value) (T, error) { return typed.FromValue[T](r.types, v) }

// LoadAs is [Load] for a type known by its name only.
func (r *Registry) LoadAs(declared string, data []byte) (Typed, error) {
	return r.types.LoadAs(declared, data)
}
