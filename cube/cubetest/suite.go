package cubetest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/guarded"
)

// Suite is the debug episodes of a benchmark (CUBE, section 10.3).
type Suite struct {
	Registry *cube.Registry
	// Config selects the debug tasks, usually a few.
	Config cube.BenchmarkConfig
	Agent  DebugAgent
	// MaxSteps of an episode; 0 means DefaultMaxSteps.
	MaxSteps int
	// Workers is how many episodes run at the same time: 0 all, 1 one after
	// the other.
	Workers int
	Infra   cube.Infra
	// OnStart and OnDone, when set, are called for each episode, one call at a
	// time. OnDone comes in the order in which episodes end.
	OnStart func(taskID string)
	OnDone  func(Report)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	Log *slog.Logger // nil drops warnings
}

// Run installs and sets up the benchmark, plays an episode per task config and
// closes the benchmark. Reports are in the order of the configs. A task that
// cannot be made is a report with an error.
func (s Suite) Run(ctx context.Context) (reports []Report, err error) {
	err = <-guarded.Isolated("the debug suite", func() (err error) {
		reports, err = s.run(ctx)
		return err
	})
	return reports, err
}

func (s Suite) run(ctx context.Context) (reports []Report, err error) {
	if s.Workers < 0 {
		return nil, cube.ValueErrorf("workers must be >= 0")
	}
	sel, err := s.Registry.Select(s.Config)
	if err != nil {
		return nil, err
	}
	if err := sel.Install(ctx); err != nil {
		return nil, err
	}
	bench, err := sel.Make(ctx, s.Infra)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bench.Close(context.WithoutCancel(ctx))) }()
	configs, err := collect(bench)
	if err != nil {
		return nil, err
	}
	reports = s.episodes(ctx, bench, configs)
	if keys := bench.RuntimeContext().Violations(); len(keys) > 0 && s.Log != nil {
		s.Log.WarnContext(ctx, "something set keys of the runtime context after setup", "keys", keys)
	}
	return reports, nil
}

func collect(bench *cube.Benchmark) ([]cube.TaskConfig, error) {
	var configs []cube.TaskConfig
	for cfg, err := range bench.TaskConfigs() {
		if err != nil {
			return nil, err
		}
		configs = append(configs, cfg)
	}
	return configs, nil
}

func (s Suite) episodes(ctx context.Context, bench *cube.Benchmark, configs []cube.TaskConfig) []Report {
	reports := make([]Report, len(configs))
	workers := s.Workers
	if workers == 0 {
		workers = len(configs)
	}
	parallel := workers > 1
	if parallel {
		for _, cfg := range configs {
			s.started(cfg)
		}
	}
	var told sync.Mutex // guards OnDone
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(workers, len(configs)) {
		wg.Go(func() {
			for i := range next {
				if !parallel {
					s.started(configs[i])
				}
				reports[i] = s.episode(ctx, bench, configs[i])
				if s.OnDone != nil {
					told.Lock()
					s.OnDone(reports[i])
					told.Unlock()
				}
			}
		})
	}
	for i := range configs {
		next <- i
	}
	close(next)
	wg.Wait()
	return reports
}

func (s Suite) started(cfg cube.TaskConfig) {
	if s.OnStart != nil {
		s.OnStart(cfg.TaskID())
	}
}

// episode plays an episode of a task. Whatever goes wrong with it is in its report.
func (s Suite) episode(ctx context.Context, bench *cube.Benchmark, cfg cube.TaskConfig) (report Report) {
	err := <-guarded.Isolated("making the task or its debug agent", func() error {
		report = s.spawnAndPlay(ctx, bench, cfg)
		return nil
	})
	if err != nil {
		return Report{TaskID: cfg.TaskID(), Err: err}
	}
	return report
}

func (s Suite) spawnAndPlay(ctx context.Context, bench *cube.Benchmark, cfg cube.TaskConfig) Report {
	task, err := bench.Spawn(ctx, cfg)
	if err != nil {
		return Report{TaskID: cfg.TaskID(), Err: err}
	}
	agent, err := s.agent(cfg)
	if err != nil {
		return Report{TaskID: cfg.TaskID(), Err: errors.Join(err, task.Close(ctx))}
	}
	maxSteps := s.MaxSteps
	if maxSteps == 0 {
		maxSteps = DefaultMaxSteps
	}
	report, err := RunEpisode(ctx, task, agent, maxSteps, s.Now)
	if report.Err == nil {
		report.Err = err
	}
	return report
}

// agent makes the debug agent of a task.
func (s Suite) agent(cfg cube.TaskConfig) (agent cube.Agent, err error) {
	err = <-guarded.Isolated("making the debug agent", func() error {
		agent = s.Agent(cfg)
		return nil
	})
	return agent, err
}
