package cubetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/guarded"
)

// Subject is the cube under test.
type Subject struct {
	// Register adds the cube's types. It is called more than once, each time
	// with a registry of its own: a worker process does the same.
	Register func(*cube.Registry) error
	// Config selects the debug tasks. Every check looks at every one of them.
	Config cube.BenchmarkConfig
	// MaxTasks limits how many tasks are looked at, for large benchmarks; 0 means
	// all. Of a composite the parts take turns, so that each is looked at.
	MaxTasks int
	Agent    DebugAgent
	// Goal is the reward that the debug agent reaches on a task, by its native
	// id; nil means 1.0 on all.
	Goal func(taskID string) float64
	// Options of the registries. CacheRoot should be a directory of the test's
	// own: the cube is installed there and removed again.
	Options cube.Options
	Infra   cube.Infra
	// VolatileInfo are keys of Evaluate's info that may differ between two
	// evaluations of the same state, output of programs for example.
	VolatileInfo []string
	// Running, when set, names what is still running for the cube, besides the
	// containers of its config's backend, which are watched anyway.
	Running func() []string
	// MaxSteps of an episode; 0 means DefaultMaxSteps.
	MaxSteps int
	// CheckTimeout bounds what each check does with one task; 0 means 10 minutes.
	CheckTimeout time.Duration
}

const defaultCheckTimeout = 10 * time.Minute

// check is one rule that every cube keeps.
type check struct {
	name string
	run  func(ctx context.Context, c *conformance) error
}

// checks are the rules, in the order of CUBE, section 10.5.
func checks() []check {
	return []check{
		{"registered", checkRegistered},
		{"task-configs", checkTaskConfigs},
		{"construction", checkConstruction},
		{"reset", checkReset},
		{"reset-reproducible", checkResetReproducible},
		{"action-set", checkActionSet},
		{"unknown-action", checkUnknownAction},
		{"stop", checkStop},
		{"step-output", checkStepOutput},
		{"evaluate-pure", checkEvaluatePure},
		{"debug-episode", checkDebugEpisode},
		{"close", checkClose},
		{"privileged-info", checkPrivilegedInfo},
		{"parallel", checkParallel},
		{"install", checkInstall},
	}
}

// Checks returns the names of the checks, in order.
func Checks() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	return names
}

// Check runs every check and returns their results, in order. The error is for
// what kept all of them from running.
func Check(ctx context.Context, s Subject) ([]Result, error) {
	if s.Register == nil || s.Config == nil || s.Agent == nil {
		return nil, errors.New("the subject lacks Register, Config or Agent")
	}
	var results []Result
	told := map[string]string{} // the first check of each reason
	for _, c := range checks() {
		r := Result{Check: c.name, Status: Pass}
		var err error
		if r.Tasks, err = runCheck(ctx, c, s); err != nil {
			r.Status, r.Reason = Fail, err.Error()
			if first, known := told[r.Reason]; known {
				r.Reason = "the same as " + first
			} else {
				told[r.Reason] = c.name
			}
		}
		results = append(results, r)
	}
	return results, nil
}

// T is what Run needs of a *testing.T.
type T[Self any] interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Context() context.Context
	Run(name string, f func(t Self)) bool
}

// Run runs every check as a subtest of t, a *testing.T.
func Run[Self T[Self]](t Self, s Subject) {
	t.Helper()
	if s.Register == nil || s.Config == nil || s.Agent == nil {
		t.Fatalf("the subject lacks Register, Config or Agent")
	}
	for _, c := range checks() {
		t.Run(c.name, func(t Self) {
			t.Helper()
			tasks, err := runCheck(t.Context(), c, s)
			if err != nil {
				t.Fatalf("%v", err)
			}
			if tasks > 0 {
				t.Logf("looked at %d tasks", tasks)
			}
		})
	}
}

func runCheck(ctx context.Context, k check, s Subject) (tasks int, err error) {
	c := &conformance{Subject: s, name: k.name, watch: &watch{}}
	err = <-guarded.Isolated("check "+k.name, func() error { return k.run(ctx, c) })
	return c.tasks, err
}

// conformance is what one check works with.
type conformance struct {
	Subject
	name  string
	watch *watch
	reg   *cube.Registry // of withBench
	tasks int            // how many were looked at
}

// registry returns a fresh one, as a new process would have it.
func (c *conformance) registry() (*cube.Registry, error) {
	r := cube.NewRegistry(c.Options)
	if err := c.Register(r); err != nil {
		return nil, fmt.Errorf("registering: %w", err)
	}
	return r, nil
}

// withBench sets the benchmark up on a fresh registry and closes it afterwards.
func (c *conformance) withBench(ctx context.Context, f func(b *cube.Benchmark) error) (err error) {
	r, err := c.registry()
	if err != nil {
		return err
	}
	c.reg = r
	sel, err := r.Select(c.Config)
	if err != nil {
		return err
	}
	if err := sel.Install(ctx); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	bench, err := sel.Make(ctx, c.Infra)
	if err != nil {
		return fmt.Errorf("setting the benchmark up: %w", err)
	}
	defer func() { err = errors.Join(err, bench.Close(context.WithoutCancel(ctx))) }()
	return f(bench)
}

// withTask makes each task and closes it afterwards; then nothing may be left
// running.
func (c *conformance) withTask(ctx context.Context, f func(ctx context.Context, t *cube.Task) error) error {
	return c.withConfig(ctx, func(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig) error {
		return c.inTask(ctx, b, cfg, func(t *cube.Task) error { return f(ctx, t) })
	})
}

// maxReported bounds how many tasks a check names that break its rule.
const maxReported = 5

// withConfig is withBench for what needs the config of each task. Every task is
// looked at, also after one that breaks the rule.
func (c *conformance) withConfig(ctx context.Context, f func(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig) error) error {
	return c.withBench(ctx, func(b *cube.Benchmark) error {
		configs, err := c.configs(b)
		if err != nil {
			return err
		}
		var failed failures
		for _, cfg := range configs {
			if err := c.bounded(ctx, 1, func(ctx context.Context) error { return f(ctx, b, cfg) }); err != nil {
				failed.add(cfg.TaskID(), err)
			}
			if ctx.Err() != nil {
				break
			}
		}
		return failed.err()
	})
}

// failures are what is wrong with tasks: what is the same with several is told once.
type failures []failure

type failure struct {
	first string // task
	more  int    // tasks of which the same is to be said
	err   error
}

func (f *failures) add(task string, err error) {
	same := func(known failure) bool { return known.err.Error() == err.Error() }
	if i := slices.IndexFunc(*f, same); i >= 0 {
		(*f)[i].more++
		return
	}
	*f = append(*f, failure{first: task, err: err})
}

func (f *failures) err() error {
	var errs []error
	left := 0
	for i, one := range *f {
		switch {
		case i >= maxReported:
			left += 1 + one.more
		case one.more > 0:
			errs = append(errs, fmt.Errorf("task %q and %d more: %w", one.first, one.more, one.err))
		default:
			errs = append(errs, fmt.Errorf("task %q: %w", one.first, one.err))
		}
	}
	if left > 0 {
		errs = append(errs, fmt.Errorf("and %d more tasks", left))
	}
	return errors.Join(errs...)
}

// bounded calls f with the time that the check may take for n tasks.
func (c *conformance) bounded(ctx context.Context, n int, f func(ctx context.Context) error) error {
	limit := c.CheckTimeout
	if limit == 0 {
		limit = defaultCheckTimeout
	}
	limit *= time.Duration(n)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("check %s took longer than %v", c.name, limit))
	defer cancel()
	_, returned, err := guarded.Within(ctx, "check "+c.name, returnGrace, nil,
		func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) }, nil)
	if !returned {
		return fmt.Errorf("%w, and what it called does not return", err)
	}
	return err
}

// returnGrace is how long code of a cube has to return when its time is up.
const returnGrace = 5 * time.Second

// configs returns the configs of the tasks to look at: all, or as many as
// MaxTasks says, from all parts of a composite.
func (c *conformance) configs(b *cube.Benchmark) ([]cube.TaskConfig, error) {
	all, err := collect(b)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("the benchmark has no tasks")
	}
	out := all
	if c.MaxTasks > 0 && c.MaxTasks < len(all) {
		out = sample(b, all, c.MaxTasks)
	}
	c.tasks = max(c.tasks, len(out))
	return out, nil
}

// sample picks n configs: the first of each part, then the second of each, and
// so on, in the order of the benchmark.
func sample(b *cube.Benchmark, all []cube.TaskConfig, n int) []cube.TaskConfig {
	round := make([]int, len(all)) // of each config, among those of its part
	seen := map[*cube.Benchmark]int{}
	for i, cfg := range all {
		leaf := leafOf(b, cfg)
		round[i] = seen[leaf]
		seen[leaf]++
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(round[i], round[j]) })
	picked := order[:n]
	slices.Sort(picked)
	out := make([]cube.TaskConfig, n)
	for i, at := range picked {
		out[i] = all[at]
	}
	return out
}

// make makes a task like Spawn does, but with its containers watched.
func (c *conformance) make(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig) (*cube.Task, error) {
	return c.reg.MakeTask(ctx, cfg, contextOf(b, cfg), c.watch.backend(backendOf(b, cfg)))
}

func (c *conformance) inTask(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig, f func(t *cube.Task) error) error {
	task, err := c.make(ctx, b, cfg)
	if err != nil {
		return fmt.Errorf("making it: %w", err)
	}
	err = <-guarded.Isolated("the check", func() error { return f(task) })
	return errors.Join(err, task.Close(context.WithoutCancel(ctx)), c.leftovers())
}

// withReset is withTask after a Reset.
func (c *conformance) withReset(ctx context.Context, f func(ctx context.Context, t *cube.Task) error) error {
	return c.withTask(ctx, func(ctx context.Context, t *cube.Task) error {
		if _, _, err := t.Reset(ctx); err != nil {
			return fmt.Errorf("resetting: %w", err)
		}
		return f(ctx, t)
	})
}

// reached tells episodes that ended with the reward that they should.
func (c *conformance) reached(r *Report) bool {
	return r.Err == nil && r.Done && r.Reward == c.goal(r.TaskID)
}

func (c *conformance) goal(taskID string) float64 {
	if c.Goal == nil {
		return 1
	}
	return c.Goal(taskID)
}

func (c *conformance) maxSteps() int {
	if c.MaxSteps == 0 {
		return DefaultMaxSteps
	}
	return c.MaxSteps
}

// leftovers is an error that names what is still running.
func (c *conformance) leftovers() error {
	left := c.watch.running()
	if c.Running != nil {
		left = append(left, c.Running()...)
	}
	if len(left) > 0 {
		return fmt.Errorf("still running: %v", left)
	}
	return nil
}
