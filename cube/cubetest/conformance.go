package cubetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/proctor-run/proctor/cube"
)

// Subject is the cube under test.
type Subject struct {
	// Register adds the cube's types. It is called more than once, each time
	// with a registry of its own: a worker process does the same.
	Register func(*cube.Registry) error
	// Config selects the debug tasks. Every check runs on the first of them, the
	// episodes on all.
	Config cube.BenchmarkConfig
	Agent  DebugAgent
	// Goal is the reward that the debug agent reaches on a task, by its native
	// id; nil means 1.0 on all.
	Goal func(taskID string) float64
	// Options of the registries. CacheRoot should be a directory of the test's
	// own: the cube is installed there and removed again.
	Options cube.Options
	Infra   cube.Infra
	// Running, when set, names what is still running for the cube, besides the
	// containers of its config's backend, which are watched anyway.
	Running func() []string
	// MaxSteps of an episode; 0 means DefaultMaxSteps.
	MaxSteps int
	// CheckTimeout bounds each check; 0 means 10 minutes.
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
	for _, c := range checks() {
		r := Result{Check: c.name, Status: Pass}
		if err := runCheck(ctx, c, s); err != nil {
			r.Status, r.Reason = Fail, err.Error()
		}
		results = append(results, r)
	}
	return results, nil
}

// T is what Run needs of a *testing.T.
type T[Self any] interface {
	Helper()
	Fatalf(format string, args ...any)
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
			if err := runCheck(t.Context(), c, s); err != nil {
				t.Fatalf("%v", err)
			}
		})
	}
}

func runCheck(ctx context.Context, c check, s Subject) (err error) {
	limit := s.CheckTimeout
	if limit == 0 {
		limit = defaultCheckTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("check %s took longer than %v", c.name, limit))
	defer cancel()
	defer recovered("check "+c.name, &err)
	return c.run(ctx, &conformance{Subject: s, watch: &watch{}})
}

// conformance is what one check works with.
type conformance struct {
	Subject
	watch *watch
	reg   *cube.Registry // of withBench
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

// withTask makes the first task and closes it afterwards; then nothing may be
// left running.
func (c *conformance) withTask(ctx context.Context, f func(t *cube.Task) error) error {
	return c.withConfig(ctx, func(b *cube.Benchmark, cfg cube.TaskConfig) error {
		return c.inTask(ctx, b, cfg, f)
	})
}

// withConfig is withBench for what needs the first task's config.
func (c *conformance) withConfig(ctx context.Context, f func(b *cube.Benchmark, cfg cube.TaskConfig) error) error {
	return c.withBench(ctx, func(b *cube.Benchmark) error {
		configs, err := collect(b)
		if err != nil {
			return err
		}
		if len(configs) == 0 {
			return errors.New("the benchmark has no tasks")
		}
		return f(b, configs[0])
	})
}

// make makes a task like Spawn does, but with its containers watched.
func (c *conformance) make(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig) (*cube.Task, error) {
	return c.reg.MakeTask(ctx, cfg, contextOf(b, cfg), c.watch.backend(backendOf(b, cfg)))
}

func (c *conformance) inTask(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig, f func(t *cube.Task) error) error {
	task, err := c.make(ctx, b, cfg)
	if err != nil {
		return fmt.Errorf("making task %q: %w", cfg.TaskID(), err)
	}
	err = func() (err error) {
		defer recovered("the check", &err)
		return f(task)
	}()
	return errors.Join(err, task.Close(context.WithoutCancel(ctx)), c.leftovers())
}

// withReset is withTask after a Reset.
func (c *conformance) withReset(ctx context.Context, f func(t *cube.Task, obs *cube.Observation) error) error {
	return c.withTask(ctx, func(t *cube.Task) error {
		obs, _, err := t.Reset(ctx)
		if err != nil {
			return fmt.Errorf("resetting: %w", err)
		}
		return f(t, obs)
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
