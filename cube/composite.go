package cube

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/cube/typed"
)

// CompositeBenchmarkConfig is several benchmarks as one, to any depth (CUBE,
// section 6.5). Its task ids are the sub-benchmark's name, a slash and the id
// there.
type CompositeBenchmarkConfig struct {
	BenchmarkConfigBase
	SubBenchConfigs      []BenchmarkConfig `json:"sub_bench_configs"`
	CompositeName        string            `json:"composite_name" default:"composite"`
	CompositeVersion     string            `json:"composite_version" default:"0.0.0"`
	CompositeDescription string            `json:"composite_description" default:""`

	reg *Registry
}

// TypeName is the name of the type in documents.
func (*CompositeBenchmarkConfig) TypeName() string { return "cube.benchmark.CompositeBenchmarkConfig" }

// Definition is empty: all of a composite follows from its parts.
func (*CompositeBenchmarkConfig) Definition() Definition { return Definition{} }

// NewComposite returns a composite of the benchmarks, which must have different
// names.
func NewComposite(name string, subs ...BenchmarkConfig) *CompositeBenchmarkConfig {
	c := Default[CompositeBenchmarkConfig]()
	c.CompositeName = name
	c.SubBenchConfigs = subs
	return &c
}

func (c *CompositeBenchmarkConfig) bind(r *Registry, _ Typed) { c.reg = r }

// Validate refuses parts of the same name. It runs when a composite is read;
// one that is made in memory is checked by [Registry.Select].
func (c *CompositeBenchmarkConfig) Validate() error {
	if c.reg == nil {
		return nil
	}
	return c.checkNames(c.reg)
}

func (c *CompositeBenchmarkConfig) checkNames(r *Registry) error {
	count := map[string]int{}
	for _, sub := range c.SubBenchConfigs {
		count[r.benchmarkName(sub)]++
	}
	maps.DeleteFunc(count, func(_ string, n int) bool { return n < 2 })
	if len(count) == 0 {
		return nil
	}
	return ValueErrorf("CompositeBenchmarkConfig requires unique sub-benchmark names; found duplicates: %s", quoteList(slices.Sorted(maps.Keys(count))))
}

func (r *Registry) benchmarkName(cfg BenchmarkConfig) string {
	if c, ok := cfg.(*CompositeBenchmarkConfig); ok {
		return c.CompositeName
	}
	if cfg == nil {
		return ""
	}
	if def, err := r.definition(cfg); err == nil {
		return def.Metadata.Name
	}
	if p, ok := cfg.(Parametrised); ok {
		return cfg.TypeName() + " " + p.DefinitionKey()
	}
	return cfg.TypeName()
}

func (r *Registry) selectComposite(c *CompositeBenchmarkConfig) (*Selection, error) {
	if err := c.checkNames(r); err != nil {
		return nil, err
	}
	s := &Selection{reg: r, cfg: c}
	for _, cfg := range c.SubBenchConfigs {
		sub, err := r.Select(cfg)
		if err != nil {
			return nil, err
		}
		s.subs = append(s.subs, sub)
	}
	return s, nil
}

func (s *Selection) compositeMetadata(c *CompositeBenchmarkConfig) (*BenchmarkMetadata, error) {
	out := &BenchmarkMetadata{Name: c.CompositeName, Version: c.CompositeVersion, Description: c.CompositeDescription}
	tags := map[string]bool{}
	for _, sub := range s.subs {
		n, err := sub.NumTasks()
		if err != nil {
			return nil, err
		}
		out.NumTasks += n
		m, err := sub.Metadata()
		if err != nil {
			return nil, err
		}
		for _, tag := range m.Tags {
			tags[tag] = true
		}
	}
	out.Tags = slices.Sorted(maps.Keys(tags))
	return out, nil
}

func (s *Selection) compositeEntries() ([]Entry, error) {
	var out []Entry
	for _, sub := range s.subs {
		entries, err := sub.Tasks()
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			out = append(out, Entry{sub.Name() + "/" + e.ID, e.Metadata})
		}
	}
	return out, nil
}

// compositeTaskConfigs yields the configs of the parts in order, each with the
// path that leads to it. TaskIDs selects among them but does not order them.
func (s *Selection) compositeTaskConfigs() iter.Seq2[TaskConfig, error] {
	return func(yield func(TaskConfig, error) bool) {
		ids := s.cfg.Base().TaskIDs
		wanted := make(map[string]bool, len(ids))
		for _, id := range ids {
			wanted[id] = true
		}
		for _, sub := range s.subs {
			for cfg, err := range sub.TaskConfigs() {
				if err != nil {
					yield(nil, err)
					return
				}
				cfg = prefixed(cfg, sub.Name())
				if ids != nil && !wanted[cfg.TaskID()] {
					continue
				}
				if !yield(cfg, nil) {
					return
				}
			}
		}
	}
}

// prefixed returns a copy of a config whose path starts with name.
func prefixed(cfg TaskConfig, name string) TaskConfig {
	out := copyConfig(cfg)
	if inner := cfg.Common().SubBenchName; inner != nil {
		name += "/" + *inner
	}
	out.Common().SubBenchName = &name
	return out
}

func (s *Selection) makeComposite(ctx context.Context, infra Infra) (*Benchmark, error) {
	b := &Benchmark{sel: s, infra: infra}
	for _, sub := range s.subs {
		made, err := sub.Make(ctx, infra)
		if err != nil {
			b.closeSubs(ctx)
			return nil, err
		}
		b.subs = append(b.subs, made)
	}
	return b, nil
}

// Leaf returns the benchmark that a config's SubBenchName leads to: b itself,
// unless it is a composite.
func (b *Benchmark) Leaf(cfg TaskConfig) (*Benchmark, error) {
	leaf, _, err := b.follow(cfg)
	return leaf, err
}

// follow walks a config's path through composites. The config that it returns
// has the path that is left: at least its last element, more when the path is
// longer than there are composites.
func (b *Benchmark) follow(cfg TaskConfig) (*Benchmark, TaskConfig, error) {
	for b.sel.def == nil {
		path := cfg.Common().SubBenchName
		if path == nil {
			return nil, nil, ValueErrorf("CompositeBenchmark.spawn() expects a TaskConfig with sub_bench_name set (emitted by CompositeBenchmarkConfig.get_task_configs()); got %s with sub_bench_name=None", typed.ClassName(cfg))
		}
		name, rest, deeper := strings.Cut(*path, "/")
		sub := b.sub(name)
		switch {
		case sub == nil:
			return nil, nil, ValueErrorf("Unknown sub-benchmark %s (from sub_bench_name=%s); known: %s", quote(name), quote(*path), quoteList(b.subNames()))
		case !deeper && sub.sel.def == nil:
			return nil, nil, ValueErrorf("sub_bench_name=%s ends at the composite %s; known there: %s", quote(*path), quote(name), quoteList(sub.subNames()))
		case deeper:
			cfg = copyConfig(cfg)
			cfg.Common().SubBenchName = &rest
		default:
			return sub, cfg, nil
		}
		b = sub
	}
	return b, cfg, b.selected(cfg)
}

func (b *Benchmark) sub(name string) *Benchmark {
	for _, sub := range b.subs {
		if sub.Name() == name {
			return sub
		}
	}
	return nil
}

func (b *Benchmark) subNames() []string {
	out := make([]string, len(b.subs))
	for i, sub := range b.subs {
		out[i] = sub.Name()
	}
	return out
}
