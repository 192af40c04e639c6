package typed

import (
	"iter"
	"maps"
	"slices"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// Presets is a read-only map from names to canonical configs (the reference's
// ConfigRegistry, CUBE, section 1.7). Whatever is taken out is a copy: changing
// it does not change the preset.
type Presets[T Typed] struct {
	reg    *Registry
	values map[string]*value.Object
}

// NewPresets keeps copies of the configs; their types must be registered. Authors
// of cubes, who have a registry of package cube, call cube.NewPresets.
func NewPresets[T Typed](r *Registry, configs map[string]T) (*Presets[T], error) {
	p := &Presets[T]{reg: r, values: map[string]*value.Object{}}
	for name, cfg := range configs {
		written, err := Dump(cfg)
		if err != nil {
			return nil, err
		}
		if _, err := FromValue[T](r, written); err != nil {
			return nil, err
		}
		p.values[name] = written
	}
	return p, nil
}

// Get returns a copy of the config of that name, or a KeyError that lists the
// names there are.
func (p *Presets[T]) Get(name string) (T, error) {
	written, ok := p.values[name]
	if !ok {
		var zero T
		var names value.List
		for _, n := range p.Names() {
			names = append(names, value.Str(n))
		}
		return zero, exception.Errorf(exception.KeyError, "Unknown config %s. Available: %s", value.Repr(value.Str(name)), value.Repr(names))
	}
	return FromValue[T](p.reg, written.Clone())
}

// Names returns the names, sorted.
func (p *Presets[T]) Names() []string { return slices.Sorted(maps.Keys(p.values)) }

// All yields names and copies of the configs, in order of the names.
func (p *Presets[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, name := range p.Names() {
			cfg, err := p.Get(name)
			if err != nil || !yield(name, cfg) { // NewPresets has read each once
				return
			}
		}
	}
}
