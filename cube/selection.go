package cube

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/proctor-run/proctor/cube/internal/executioncache"
	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/internal/fnmatch"
	"github.com/proctor-run/proctor/internal/guarded"
)

// Selection is the tasks that a benchmark config selects. It does not change:
// narrowing it gives another one.
type Selection struct {
	reg  *Registry
	cfg  BenchmarkConfig
	def  *Definition  // nil for composites
	subs []*Selection // of composites
}

// Entry is a task of a selection.
type Entry struct {
	// ID is the native id; in composites below the path of sub-benchmarks.
	ID       string
	Metadata Metadata
}

// Select returns the tasks that a config selects. The config's type, and those
// of all sub-benchmarks, must be registered.
func (r *Registry) Select(cfg BenchmarkConfig) (*Selection, error) {
	if c, ok := cfg.(*CompositeBenchmarkConfig); ok {
		return r.selectComposite(c)
	}
	if cfg == nil {
		return nil, TypeErrorf("no benchmark config")
	}
	def, err := r.definition(cfg)
	if err != nil {
		return nil, err
	}
	return &Selection{reg: r, cfg: cfg, def: def}, nil
}

// Config returns the config of this selection.
func (s *Selection) Config() BenchmarkConfig { return s.cfg }

// Name returns the benchmark's name.
func (s *Selection) Name() string {
	if c, ok := s.cfg.(*CompositeBenchmarkConfig); ok {
		return c.CompositeName
	}
	return s.def.Metadata.Name
}

// Metadata returns the benchmark's metadata; a composite's is computed.
func (s *Selection) Metadata() (*BenchmarkMetadata, error) {
	if c, ok := s.cfg.(*CompositeBenchmarkConfig); ok {
		return s.compositeMetadata(c)
	}
	return s.def.Metadata, nil
}

// all returns every task of the benchmark, selected or not.
func (s *Selection) all() ([]Entry, error) {
	if s.def == nil {
		return s.compositeEntries()
	}
	out := make([]Entry, len(s.def.Tasks))
	for i, m := range s.def.Tasks {
		out[i] = Entry{m.Base().ID, m}
	}
	return out, nil
}

// Tasks returns the selected tasks: all in the benchmark's order, or those of
// TaskIDs in the order of TaskIDs, each once (CUBE, section 6.2: tasks is a
// mapping). An id that the benchmark does not have is a KeyError.
func (s *Selection) Tasks() ([]Entry, error) {
	ids := s.cfg.Base().TaskIDs
	all, err := s.all()
	if err != nil || ids == nil {
		return all, err
	}
	byID := make(map[string]Metadata, len(all))
	for _, e := range all {
		byID[e.ID] = e.Metadata
	}
	out := make([]Entry, 0, len(ids))
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		m := byID[id]
		if m == nil {
			return nil, keyErrorf("%s", id)
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, Entry{id, m})
		}
	}
	return out, nil
}

// NumTasks returns how many tasks are selected.
func (s *Selection) NumTasks() (int, error) {
	if s.def != nil && s.cfg.Base().TaskIDs == nil {
		return len(s.def.Tasks), nil
	}
	tasks, err := s.Tasks()
	return len(tasks), err
}

// TaskConfigs yields one config per selected task, or one per seed when there
// is a seed generator. An error ends it.
func (s *Selection) TaskConfigs() iter.Seq2[TaskConfig, error] {
	if s.def == nil {
		return s.compositeTaskConfigs()
	}
	return func(yield func(TaskConfig, error) bool) {
		tasks, err := s.Tasks()
		if err != nil {
			yield(nil, err)
			return
		}
		for _, e := range tasks {
			if !s.yieldTask(e, yield) {
				return
			}
		}
	}
}

func (s *Selection) yieldTask(e Entry, yield func(TaskConfig, error) bool) bool {
	g := s.cfg.Base().SeedGenerator
	if g == nil {
		return yieldConfig(yield)(s.taskConfig(e.Metadata, nil))
	}
	seeds, err := g.Seeds(e.Metadata)
	if err != nil {
		yield(nil, err)
		return false
	}
	for _, seed := range seeds {
		if !yieldConfig(yield)(s.taskConfig(e.Metadata, &seed)) {
			return false
		}
	}
	return true
}

// yieldConfig stops after an error.
func yieldConfig(yield func(TaskConfig, error) bool) func(TaskConfig, error) bool {
	return func(c TaskConfig, err error) bool { return yield(c, err) && err == nil }
}

func (s *Selection) taskConfig(m Metadata, seed *int64) (TaskConfig, error) {
	shape, err := typed.StructOf(reflect.TypeOf(s.def.TaskConfig).Elem())
	if err != nil {
		return nil, err
	}
	c := shape.New().Interface().(TaskConfig)
	if err := c.setMetadata(m); err != nil {
		return nil, err
	}
	common := c.Common()
	common.ToolConfig = s.cfg.Base().ToolConfig
	common.Seed = seed
	c.bind(s.reg, c)
	if own, ok := s.cfg.(TaskConfigurer); ok {
		err := guarded.Call("ConfigureTask", func() error { return own.ConfigureTask(c) })
		if err != nil {
			return nil, fmt.Errorf("configuring task %s: %w", quote(m.Base().ID), err)
		}
	}
	return c, nil
}

// CacheDir returns the directory of the benchmark's installed data, "" when
// there is no cache.
func (s *Selection) CacheDir() string { return s.reg.benchmarkDir(s.cfg, s.Name()) }

// cache is what the install hooks get. Where execution infos lie may depend on
// what the benchmark put into its task configs.
func (s *Selection) cache() (*Cache, error) {
	cfg := s.def.TaskConfig
	if len(s.def.Tasks) > 0 {
		var err error
		if cfg, err = s.taskConfig(s.def.Tasks[0], nil); err != nil {
			return nil, err
		}
	}
	dir := s.reg.ExecutionCacheDir(cfg)
	if dir == "" {
		return nil, fmt.Errorf("%s: %w", s.Name(), executioncache.ErrNone)
	}
	return &Cache{dir: executioncache.Dir(dir)}, nil
}

// Installable reports whether there is anything to install: whether the
// benchmark's config, or one of its parts, is an [Installer].
func (s *Selection) Installable() bool {
	if s.def == nil {
		return slices.ContainsFunc(s.subs, (*Selection).Installable)
	}
	_, ok := s.cfg.(Installer)
	return ok
}

// Install prepares this machine for the benchmark, if there is anything to
// prepare ([Selection.Installable]). Doing it again changes nothing. It needs
// [Options.CacheRoot].
func (s *Selection) Install(ctx context.Context) error {
	if s.def == nil {
		return s.eachSub(func(sub *Selection) error { return sub.Install(ctx) })
	}
	i, ok := s.cfg.(Installer)
	if !ok {
		return nil
	}
	c, err := s.cache()
	if err != nil {
		return err
	}
	return guarded.Call("Install", func() error { return i.Install(ctx, c) })
}

// Uninstall removes what Install did.
func (s *Selection) Uninstall(ctx context.Context) error {
	if s.def == nil {
		return s.eachSub(func(sub *Selection) error { return sub.Uninstall(ctx) })
	}
	u, ok := s.cfg.(Uninstaller)
	if !ok {
		return nil
	}
	c, err := s.cache()
	if err != nil {
		return err
	}
	return guarded.Call("Uninstall", func() error { return u.Uninstall(ctx, c) })
}

func (s *Selection) eachSub(f func(*Selection) error) error {
	for _, sub := range s.subs {
		if err := f(sub); err != nil {
			return err
		}
	}
	return nil
}

// narrowed returns the selection of the same config with other task ids.
func (s *Selection) narrowed(ids []string) *Selection {
	ptr := reflect.New(reflect.TypeOf(s.cfg).Elem())
	ptr.Elem().Set(reflect.ValueOf(s.cfg).Elem())
	cfg := ptr.Interface().(BenchmarkConfig)
	cfg.Base().TaskIDs = ids
	out := *s
	out.cfg = cfg
	return &out
}

// Subset narrows the selection to the ids, in their order, each once. Other
// fields of the config stay.
func (s *Selection) Subset(ids ...string) (*Selection, error) {
	if len(ids) == 0 {
		return nil, ValueErrorf("tasks must be a non-empty sequence of task ids (str) or TaskMetadata objects.")
	}
	tasks, err := s.Tasks()
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(tasks))
	for _, e := range tasks {
		known[e.ID] = true
	}
	var unique, unknown []string
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		switch {
		case seen[id]:
		case known[id]:
			unique = append(unique, id)
		default:
			unknown = append(unknown, id)
		}
		seen[id] = true
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		set := quoteList(unknown)
		return nil, ValueErrorf("The following specified tasks do not exist in the benchmark: {%s}", set[1:len(set)-1])
	}
	return s.narrowed(unique), nil
}

// Glob narrows the selection to the tasks whose metadata has a field of the
// name key whose text matches the shell pattern (CUBE, section 6.2).
func (s *Selection) Glob(key, pattern string) (*Selection, error) {
	tasks, err := s.Tasks()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range tasks {
		text, ok, err := s.reg.types.FieldText(e.Metadata, key)
		if err != nil {
			return nil, err
		}
		if ok && fnmatch.Match(pattern, text) {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return nil, ValueErrorf("No tasks found matching glob pattern '%s' on key '%s'", pattern, key)
	}
	return s.narrowed(ids), nil
}

// NamedSubsets returns the names of the benchmark's own subsets, in order.
func (s *Selection) NamedSubsets() []string {
	names := []string{}
	if s.def != nil {
		for name := range s.def.Metadata.NamedSubsets.All() {
			names = append(names, name)
		}
	}
	return names
}

// NamedSubset narrows the selection to one of the benchmark's own subsets.
func (s *Selection) NamedSubset(name string) (*Selection, error) {
	if s.def != nil {
		if pair, ok := s.def.Metadata.NamedSubsets.Get(name); ok {
			return s.Glob(pair[0], pair[1])
		}
	}
	return nil, keyErrorf("Unknown subset %s. Available: %s", quote(name), quoteList(s.NamedSubsets()))
}
