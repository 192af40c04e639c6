package cubetest

import (
	"context"
	"math"
	"time"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/internal/guarded"
	"github.com/proctor-run/proctor/value"
)

// DebugAgent makes the agent that knows the answers of a task: it is
// deterministic and reaches reward 1.0. The config is all that there is to know
// of the task before it runs: its metadata, its seed, its id within composites.
type DebugAgent func(task cube.TaskConfig) cube.Agent

// ask returns the actions of an agent's next turn; none when it has nothing more to do.
func ask(ctx context.Context, agent cube.Agent, t *cube.Task, obs *cube.Observation) ([]cube.Action, error) {
	return agent.Act(ctx, obs, t.ActionSet()) //nolint:contextcheck // an action set has no context
}

// DefaultMaxSteps bounds a debug episode when nothing else is said.
const DefaultMaxSteps = 20

// Report is how one debug episode went (CUBE, section 10.2). Times are in
// seconds.
type Report struct {
	TaskID            string
	Done              bool
	Reward            float64
	Steps             int
	EpisodeTime       float64
	StepTimes         []float64
	Err               error // nil, or what ended the episode before its time
	ToolsListOK       bool
	ToolsListError    string
	ResetTime         float64
	CloseIdempotentOK bool
	Profiling         cube.List // one entry per step
}

// Passed reports whether the episode ended with reward 1.0 and without error.
func (r *Report) Passed() bool { return r.Err == nil && r.Done && r.Reward == 1 }

// Object returns the report with the format's keys and rounding.
func (r *Report) Object() *cube.Object {
	times := make(cube.List, len(r.StepTimes))
	for i, t := range r.StepTimes {
		times[i] = cube.Float(round(t, 3))
	}
	var failure any
	if r.Err != nil {
		failure = cube.ErrorType(r.Err) + ": " + r.Err.Error()
	}
	profiling := r.Profiling
	if profiling == nil {
		profiling = cube.List{}
	}
	return cube.Pairs(
		"task_id", r.TaskID,
		"done", r.Done,
		"reward", r.Reward,
		"steps", r.Steps,
		"episode_time_s", round(r.EpisodeTime, 2),
		"step_times_s", times,
		"error", failure,
		"tools_list_ok", r.ToolsListOK,
		"tools_list_error", r.ToolsListError,
		"reset_time_s", round(r.ResetTime, 4),
		"close_idempotent_ok", r.CloseIdempotentOK,
		"profiling", profiling,
	)
}

func round(x float64, digits int) float64 {
	f := math.Pow10(digits)
	return math.RoundToEven(x*f) / f
}

// JSON returns the reports of a benchmark as the format prints them.
func JSON(benchmark string, reports []Report) []byte {
	episodes := make(cube.List, len(reports))
	for i := range reports {
		episodes[i] = reports[i].Object()
	}
	out := cube.Pairs("benchmark", benchmark, "debug_episodes", episodes)
	return value.AppendDumps(nil, out, value.DumpsOptions{Indent: 2})
}

// RunEpisode lets an agent work on a task for at most maxSteps steps and closes
// the task, twice. Where the agent has nothing more to do the task is evaluated with
// what was seen last, and done. What goes wrong is part of the report, a panic or the
// end of the goroutine too; only an error of the first Close is returned. now is the
// clock, the system's when it is nil.
func RunEpisode(ctx context.Context, task *cube.Task, agent cube.Agent, maxSteps int, now func() time.Time) (Report, error) {
	now = clock.Or(now)
	e := &episode{task: task, now: now, report: Report{TaskID: task.ID(), CloseIdempotentOK: true}}
	start := now()
	e.report.Err = <-guarded.Isolated("the debug episode", func() error { return e.play(ctx, agent, maxSteps) })
	e.report.EpisodeTime = now().Sub(start).Seconds()
	shut := func() error { return task.Close(ctx) }
	if err := <-guarded.Isolated("Close", shut); err != nil {
		return e.report, err
	}
	e.report.CloseIdempotentOK = <-guarded.Isolated("Close", shut) == nil
	return e.report, nil
}

type episode struct {
	task   *cube.Task
	now    func() time.Time
	report Report
}

func (e *episode) play(ctx context.Context, agent cube.Agent, maxSteps int) error {
	r := &e.report
	start := e.now()
	obs, _, err := e.task.Reset(ctx)
	r.ResetTime = e.now().Sub(start).Seconds()
	if err != nil {
		return err
	}
	r.ToolsListError = checkToolsList(e.task.ActionSet()) //nolint:contextcheck // an action set has no context
	r.ToolsListOK = r.ToolsListError == ""
	var last *cube.EnvironmentOutput
	for r.Steps < maxSteps {
		actions, err := ask(ctx, agent, e.task, obs)
		if err != nil {
			return err
		}
		if len(actions) == 0 {
			r.Reward, _, err = e.task.Evaluate(ctx, obs)
			r.Done = err == nil
			return err
		}
		start := e.now()
		last, err = e.task.Step(ctx, actions...)
		if err != nil {
			return err
		}
		r.StepTimes = append(r.StepTimes, e.now().Sub(start).Seconds())
		r.Steps++
		profiling, _ := last.FullInfo().Get("profiling")
		r.Profiling = append(r.Profiling, profiling)
		obs = last.Obs
		if last.Done {
			break
		}
	}
	if last != nil {
		r.Done, r.Reward = last.Done, last.Reward
	}
	return nil
}

// checkToolsList is the format's check of an action set; "" when it passes.
func checkToolsList(actions []cube.ActionSchema) string {
	if len(actions) == 0 {
		return "action_set is empty or not a list"
	}
	return ""
}
