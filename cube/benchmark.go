package cube

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/internal/runtimevalues"
	"github.com/proctor-run/proctor/internal/guarded"
)

// Setup is what a benchmark's [Runtime] is set up with.
type Setup struct {
	cfg   BenchmarkConfig
	infra Infra
	c     *runtimevalues.Values
}

// Config returns the benchmark's config.
func (s *Setup) Config() BenchmarkConfig { return s.cfg }

// Infra returns the infra that the benchmark was made with, nil for none. Tasks
// use it only when Setup puts it into the context, under "infra".
func (s *Setup) Infra() Infra { return s.infra }

// Set puts a value into the runtime context: data is copied, live things
// (pointers, functions) are handed to every task as they are. After the hook
// has returned it is [ErrFrozen].
func (s *Setup) Set(key string, value any) error { return s.c.Set(key, value) }

// Benchmark is a benchmark that has been set up. Spawn may be called from any
// number of goroutines; Close must be called, when all tasks are closed. After
// it there are no more tasks, and a second Close does nothing.
type Benchmark struct {
	sel     *Selection
	infra   Infra
	rc      RuntimeContext
	runtime Runtime
	view    map[string]bool
	subs    []*Benchmark // of composites
	closed  atomic.Bool
}

// Make provisions what the benchmark needs, if there is an infra, and sets it
// up (CUBE, section 6.2). Of a composite whose part fails, the parts that were
// set up are closed.
func (s *Selection) Make(ctx context.Context, infra Infra) (*Benchmark, error) {
	if infra != nil {
		for _, res := range s.cfg.Base().Resources {
			if err := provision(ctx, infra, res); err != nil {
				return nil, fmt.Errorf("provisioning %q: %w", res.Base().Name, err)
			}
		}
	}
	if s.def == nil {
		return s.makeComposite(ctx, infra)
	}
	tasks, err := s.Tasks()
	if err != nil {
		return nil, err
	}
	b := &Benchmark{sel: s, infra: infra, view: make(map[string]bool, len(tasks))}
	for _, e := range tasks {
		b.view[e.ID] = true
	}
	if err := b.setup(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

func provision(ctx context.Context, at Infra, r infra.Resource) error {
	status, err := at.ProvisionStatus(ctx, r)
	if err != nil || status == infra.Ready {
		return err
	}
	return at.Provision(ctx, r)
}

func (b *Benchmark) setup(ctx context.Context) error {
	c := &runtimevalues.Values{}
	b.rc = RuntimeContext{c}
	defer c.Freeze()
	if b.sel.def.Runtime == nil {
		return nil
	}
	return guarded.Call("Setup", func() error {
		b.runtime = b.sel.def.Runtime()
		return b.runtime.Setup(ctx, &Setup{cfg: b.sel.cfg, infra: b.infra, c: c})
	})
}

// Make selects a config's tasks and sets the benchmark up.
func (r *Registry) Make(ctx context.Context, cfg BenchmarkConfig, infra Infra) (*Benchmark, error) {
	s, err := r.Select(cfg)
	if err != nil {
		return nil, err
	}
	return s.Make(ctx, infra)
}

// Selection returns what the benchmark was made of.
func (b *Benchmark) Selection() *Selection { return b.sel }

// Name returns the benchmark's name.
func (b *Benchmark) Name() string { return b.sel.Name() }

// RuntimeContext returns what Setup left. A composite's is empty: each task
// gets that of its own benchmark.
func (b *Benchmark) RuntimeContext() RuntimeContext { return b.rc }

// TaskConfigs yields the configs of the selected tasks, for Spawn here or for a
// worker elsewhere.
func (b *Benchmark) TaskConfigs() iter.Seq2[TaskConfig, error] { return b.sel.TaskConfigs() }

// Spawn makes a task in this process. The config must be of a selected task; in
// a composite its SubBenchName leads to the benchmark it belongs to.
func (b *Benchmark) Spawn(ctx context.Context, cfg TaskConfig) (*Task, error) {
	leaf, cfg, err := b.follow(cfg)
	if err != nil {
		return nil, err
	}
	if b.closed.Load() || leaf.closed.Load() {
		return nil, RuntimeErrorf("benchmark %s is closed: it makes no more tasks", quote(b.Name()))
	}
	return leaf.sel.reg.MakeTask(ctx, cfg, leaf.rc, leaf.sel.cfg.Base().ContainerBackend)
}

// selected refuses configs of tasks that are not selected.
func (b *Benchmark) selected(cfg TaskConfig) error {
	if id := cfg.TaskID(); !b.view[id] {
		return ValueErrorf("Task '%s' not found in benchmark '%s' (current view has %d tasks)", id, b.Name(), len(b.view))
	}
	return nil
}

// Close stops what Setup started. A composite closes all its parts, whatever
// becomes of each, and never fails: what went wrong is logged.
func (b *Benchmark) Close(ctx context.Context) error {
	if b.closed.Swap(true) {
		return nil
	}
	if b.sel.def == nil {
		b.closeSubs(ctx)
		return nil
	}
	if b.runtime == nil {
		return nil
	}
	return guarded.Call("Close", func() error { return b.runtime.Close(ctx) })
}

func (b *Benchmark) closeSubs(ctx context.Context) {
	ctx, cancel := detached(ctx)
	defer cancel()
	for _, sub := range b.subs {
		if err := sub.Close(ctx); err != nil {
			b.sel.reg.log().WarnContext(ctx, "closing a sub-benchmark", "benchmark", sub.Name(), "error", err)
		}
	}
}
