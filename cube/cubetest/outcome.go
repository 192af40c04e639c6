package cubetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/value"
)

// Names of the format's checks, in the order in which they are printed. Scripts
// read them (CUBE, section 10.4).
const (
	nameTasksExist      = "test_debug_tasks_exist"
	nameAgentExists     = "test_debug_agent_exists"
	nameFullEpisode     = "test_full_episode"
	nameReproducible    = "test_reset_reproducibility"
	nameToolsList       = "test_tools_list"
	nameCloseIdempotent = "test_close_idempotent"
	nameMetadata        = "test_benchmark_metadata"
)

// Status of a check.
type Status string

// The statuses, as they are printed.
const (
	Pass Status = "PASS"
	Fail Status = "FAIL"
	Skip Status = "SKIP"
)

// Result is how a check ended, with the reason when it did not pass.
type Result struct {
	Check  string
	Status Status
	Reason string
	// Tasks is how many tasks the check looked at; 0 for a check that is not
	// about tasks.
	Tasks int
}

// Outcome is what the debug suite of a benchmark came to.
type Outcome struct {
	Benchmark string
	Reports   []Report
	Results   []Result
}

// Debug runs a debug suite and the format's checks on it. Reproducibility is
// checked unless skipReset is set.
func Debug(ctx context.Context, s Suite, skipReset bool) (*Outcome, error) {
	sel, err := s.Registry.Select(s.Config)
	if err != nil {
		return nil, err
	}
	o := &Outcome{Benchmark: sel.Name()}
	if o.Reports, err = s.Run(ctx); err != nil {
		return nil, err
	}
	if len(o.Reports) > 0 {
		o.add(nameTasksExist, nil)
		o.add(nameAgentExists, nil)
	}
	o.add(nameFullEpisode, o.each((*Report).Passed, "did not reach reward 1.0"))
	if skipReset {
		o.Results = append(o.Results, Result{Check: nameReproducible, Status: Skip})
	} else {
		o.add(nameReproducible, s.reproducible(ctx))
	}
	o.add(nameToolsList, o.each(func(r *Report) bool { return r.ToolsListOK }, "has no usable action set"))
	o.add(nameCloseIdempotent, o.each(func(r *Report) bool { return r.CloseIdempotentOK }, "cannot be closed twice"))
	_, err = sel.Metadata()
	o.add(nameMetadata, err)
	return o, nil
}

func (o *Outcome) add(check string, err error) {
	r := Result{Check: check, Status: Pass}
	if err != nil {
		r.Status, r.Reason = Fail, err.Error()
	}
	o.Results = append(o.Results, r)
}

func (o *Outcome) each(ok func(*Report) bool, what string) error {
	var failed failures
	for i := range o.Reports {
		r := &o.Reports[i]
		switch {
		case ok(r):
		case r.Err != nil:
			failed.add(r.TaskID, fmt.Errorf("%s: %w", what, r.Err))
		default:
			failed.add(r.TaskID, errors.New(what))
		}
	}
	return failed.err()
}

// reproducible compares the first observations of two tasks of one config.
func (s Suite) reproducible(ctx context.Context) (err error) {
	bench, err := s.Registry.Make(ctx, s.Config, s.Infra)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bench.Close(context.WithoutCancel(ctx))) }()
	configs, err := collect(bench)
	if err != nil {
		return err
	}
	if len(configs) == 0 {
		return errors.New("no debug task configs")
	}
	return sameFirstObservation(ctx, bench, configs[0])
}

func sameFirstObservation(ctx context.Context, bench *cube.Benchmark, cfg cube.TaskConfig) error {
	var first [2]*cube.Observation
	for i := range first {
		var err error
		if first[i], err = firstObservation(ctx, bench, cfg); err != nil {
			return err
		}
	}
	diff, err := observationDiff(first[0], first[1])
	if err != nil || diff == "" {
		return err
	}
	return errors.New("first observation differed between two resets\n" + diff)
}

func firstObservation(ctx context.Context, bench *cube.Benchmark, cfg cube.TaskConfig) (obs *cube.Observation, err error) {
	task, err := bench.Spawn(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, task.Close(ctx)) }()
	obs, _, err = task.Reset(ctx)
	return obs, err
}

// Failed returns how many episodes did not reach reward 1.0.
func (o *Outcome) Failed() int {
	n := 0
	for i := range o.Reports {
		if !o.Reports[i].Passed() {
			n++
		}
	}
	return n
}

// ExitCode is 1 when an episode failed or none ran. Other failed checks do not
// count.
func (o *Outcome) ExitCode() int {
	if o.Failed() > 0 || len(o.Reports) == 0 {
		return 1
	}
	return 0
}

// WriteText writes the format's plain lines; jsonPath is the report file that
// was written, "" for none.
func (o *Outcome) WriteText(w io.Writer, jsonPath string) error {
	text := fmt.Sprintf("cube test  benchmark=%s  tasks=%d  failures=%d\n", o.Benchmark, len(o.Reports), o.Failed())
	for _, r := range o.Results {
		text += fmt.Sprintf("  %s  %s\n", r.Status, r.Check)
	}
	if jsonPath != "" {
		text += "  JSON  " + jsonPath + "\n"
	}
	text += "\n"
	if o.ExitCode() == 0 {
		text += "PASSED\n"
	} else {
		text += fmt.Sprintf("FAILED — %d/%d tasks did not reach reward 1.0\n", o.Failed(), len(o.Reports))
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// ReportFile returns the content of the format's report file.
func (o *Outcome) ReportFile(version string, at time.Time) []byte {
	var passed, failed cube.List
	for _, r := range o.Results {
		switch r.Status {
		case Pass:
			passed = append(passed, cube.Str(r.Check))
		case Fail:
			failed = append(failed, cube.Str(r.Check))
		}
	}
	var steps []float64
	var episodes, resets float64
	profiles := make([]cube.Value, len(o.Reports))
	for i := range o.Reports {
		r := &o.Reports[i]
		steps = append(steps, r.StepTimes...)
		episodes += r.EpisodeTime
		resets += r.ResetTime
		profiles[i] = r.Profiling
	}
	n := float64(max(len(o.Reports), 1))
	out := cube.Pairs(
		"cube_version", version,
		"benchmark", o.Benchmark,
		"timestamp", at.UTC().Format(time.RFC3339),
		"hardware", cube.Pairs("cpu_count", runtime.NumCPU()),
		"compliance", cube.Pairs("passed", orEmpty(passed), "failed", orEmpty(failed)),
		"performance", cube.Pairs(
			"task_setup_time_s", resets/n,
			"step_latency_p50_s", percentile(steps, 0.50),
			"step_latency_p95_s", percentile(steps, 0.95),
			"step_latency_p99_s", percentile(steps, 0.99),
			"episode_time_s", episodes/n,
			"profiling", aggregateProfiling(profiles...),
		),
	)
	return value.AppendDumps(nil, out, value.DumpsOptions{Indent: 2})
}

func orEmpty(l cube.List) cube.List {
	if l == nil {
		return cube.List{}
	}
	return l
}
