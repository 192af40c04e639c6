package trial_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
)

// A cube each of whose parts does what a test says.

type faultyProblem struct {
	cube.TaskBase[*lookMetadata]
	on map[string]func(ctx context.Context) error // by hook
	// reward of an evaluation; 1 where it is not set.
	reward *float64
	done   bool // after the first step
	text   string
}

func (p *faultyProblem) do(ctx context.Context, hook string) error {
	if f := p.on[hook]; f != nil {
		return f(ctx)
	}
	return nil
}

func (p *faultyProblem) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	return cube.Observe(cube.Text("Look.")), nil, p.do(ctx, "Reset")
}

func (p *faultyProblem) Finished(ctx context.Context, _ *cube.Observation) (bool, error) {
	return p.done, p.do(ctx, "Finished")
}

func (p *faultyProblem) Evaluate(ctx context.Context, _ *cube.Observation) (float64, cube.Info, error) {
	if p.reward != nil {
		return *p.reward, nil, nil
	}
	return 1, cube.Pairs("text", p.text), p.do(ctx, "Evaluate")
}

func (p *faultyProblem) Close(ctx context.Context) error { return p.do(ctx, "Close") }

type faultyTool struct{ p *faultyProblem }

func (*faultyTool) TypeName() string { return "faulty_cube.ToolConfig" }

func (c *faultyTool) Make(ctx context.Context, _ cube.Container) (cube.Tool, error) {
	if err := c.p.do(ctx, "Make"); err != nil {
		return nil, err
	}
	return cube.NewActionTool("FaultyTool", cube.Func("look", "Look.", func(ctx context.Context, _ struct{}) (any, error) {
		return "looked" + c.p.text, c.p.do(ctx, "look")
	}))
}

// faultyBench runs trials of the cube with an agent that looks once, or as act says.
func faultyBench(t *testing.T, p *faultyProblem, act func(context.Context) ([]cube.Action, error)) *bench {
	t.Helper()
	b := newBench(t, goodTask(), fake.Config{})
	p.Metadata = &lookMetadata{cube.TaskMetadata{ID: "look", RecommendedMaxSteps: new(4)}}
	p.ToolConfig = &faultyTool{p}
	b.Cube = func(jobdir.TrialConfig) (*trial.CubeTask, error) {
		return &trial.CubeTask{
			Name: "faulty-cube/look", Checksum: "0",
			Make: func(ctx context.Context, _ sandbox.Backend) (*cube.Task, error) { return cube.NewTask(ctx, p) },
		}, nil
	}
	b.Agents = append(agents.All(), agent.Entry{Name: "mine", Stepped: func(agent.Config) (cube.Agent, error) {
		if err := p.do(t.Context(), "factory"); err != nil {
			return nil, err
		}
		if act == nil {
			return cube.Script(cube.NewAction("look")), nil
		}
		return cube.AgentFunc(func(ctx context.Context, _ *cube.Observation, _ []cube.ActionSchema) ([]cube.Action, error) {
			return act(ctx)
		}), nil
	}})
	b.cfg.Agent.Name = new("mine")
	return b
}

// TestFaultsStayInTheirTrial: a panic and the end of a goroutine anywhere in a cube or
// its agent are the trial's exception.
func TestFaultsStayInTheirTrial(t *testing.T) {
	t.Parallel()
	faults := map[string]struct {
		do   func(context.Context) error
		text string
	}{
		"panic":  {func(context.Context) error { panic("oh") }, "oh"},
		"goexit": {func(context.Context) error { runtime.Goexit(); return nil }, "ended its goroutine"},
	}
	for _, hook := range []string{"factory", "Make", "Reset", "Act", "look", "Finished", "Evaluate", "Close"} {
		for name, fault := range faults {
			t.Run(name+" in "+hook, func(t *testing.T) {
				t.Parallel()
				p := &faultyProblem{on: map[string]func(context.Context) error{hook: fault.do}}
				var act func(context.Context) ([]cube.Action, error)
				if hook == "Act" {
					act = func(ctx context.Context) ([]cube.Action, error) { return nil, fault.do(ctx) }
				}
				res := faultyBench(t, p, act).run(t)
				if hook == "look" && name == "panic" { // an action that fails is data
					if got := rewardsText(res); got != "{'reward': 1.0}" {
						t.Errorf("rewards %s, exception %+v", got, res.ExceptionInfo)
					}
					return
				}
				if got := exceptionType(res); got != "RuntimeError" || !strings.Contains(res.ExceptionInfo.Message, fault.text) {
					t.Errorf("exception %+v", res.ExceptionInfo)
				}
				if res.FinishedAt == nil {
					t.Error("the trial has no end")
				}
			})
		}
	}
}

// TestDeafHooks: what does not listen to its context ends its trial all the same, and
// nothing is asked of the task any more.
func TestDeafHooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ hook, want string }{
		{"Reset", "AgentTimeoutError"}, {"look", "AgentTimeoutError"}, {"Act", "AgentTimeoutError"},
		{"Evaluate", "VerifierTimeoutError"}, {"Close", "RuntimeError"},
	} {
		t.Run(c.hook, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				deaf := func(context.Context) error { <-release; return nil }
				p := &faultyProblem{done: c.hook != "Close", on: map[string]func(context.Context) error{c.hook: deaf}}
				var act func(context.Context) ([]cube.Action, error)
				if c.hook == "Act" {
					act = func(ctx context.Context) ([]cube.Action, error) { return nil, deaf(ctx) }
				}
				b := faultyBench(t, p, act)
				b.cfg.Agent.OverrideTimeoutSec, b.cfg.Verifier.OverrideTimeoutSec = new(2.0), new(3.0)
				start := time.Now()
				res := b.run(t)
				if got := exceptionType(res); got != c.want {
					t.Errorf("exception %+v, want %s", res.ExceptionInfo, c.want)
				}
				if took := time.Since(start); took > 3*time.Minute {
					t.Errorf("the trial took %v", took)
				}
				if c.hook != "Close" && res.VerifierResult != nil {
					t.Errorf("scored with %s", rewardsText(res))
				}
				notes, err := jobdir.ReadNotes(b.dir)
				if err != nil || (notes.Episode.End == jobdir.EpisodeTimeout) != (c.want == exception.AgentTimeoutError) {
					t.Errorf("the episode is noted as %+v (%v)", notes.Episode, err)
				}
				close(release)
				synctest.Wait()
			})
		})
	}
}

// TestTimeouts: what listens to its context is scored as it is when the agent's time
// is up, and the episode is said to be truncated.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	p := &faultyProblem{on: map[string]func(context.Context) error{"look": func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}}}
	b := faultyBench(t, p, nil)
	b.cfg.Agent.OverrideTimeoutSec = new(2.0)
	res := b.runTimed(t)
	notes, err := jobdir.ReadNotes(b.dir)
	if err != nil || notes.Episode.End != jobdir.EpisodeTimeout || !notes.Episode.Truncated {
		t.Errorf("the episode is noted as %+v (%v)", notes.Episode, err)
	}
	if got := rewardsText(res); got != "{'reward': 1.0}" || exceptionType(res) != exception.AgentTimeoutError {
		t.Errorf("rewards %s, exception %+v", got, res.ExceptionInfo)
	}
}

// TestAbandon: nobody waits for what does not return once that is asked for, also
// where the trial's context has yet to end.
func TestAbandon(t *testing.T) {
	t.Parallel()
	for name, cancels := range map[string]bool{"cancelled": true, "about to be cancelled": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				p := &faultyProblem{on: map[string]func(context.Context) error{"look": func(context.Context) error { <-release; return nil }}}
				b := faultyBench(t, p, nil)
				abandon := make(chan struct{})
				b.Abandon = abandon
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(time.Second, func() {
					if cancels {
						cancel()
					}
					close(abandon)
				})
				start := time.Now()
				res, err := b.Run(ctx, b.cfg, 1)
				if err != nil || exceptionType(res) != exception.CancelledError {
					t.Errorf("exception %+v (%v)", res.ExceptionInfo, err)
				}
				if took := time.Since(start); took != time.Second {
					t.Errorf("the trial took %v", took)
				}
				close(release)
				synctest.Wait()
			})
		})
	}
}

// TestLateTasksAreClosed: a task that is made too late is not left open.
func TestLateTasksAreClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, closed := make(chan struct{}), make(chan struct{})
		p := &faultyProblem{on: map[string]func(context.Context) error{
			"Make":  func(context.Context) error { <-release; return nil },
			"Close": func(context.Context) error { close(closed); return nil },
		}}
		b := faultyBench(t, p, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := b.Run(ctx, b.cfg, 1)
		if err != nil || exceptionType(res) != exception.CancelledError {
			t.Errorf("exception %+v (%v)", res.ExceptionInfo, err)
		}
		close(release)
		<-closed
	})
}

// TestScoresAreNumbers: a reward that is no finite number is an error of the cube.
func TestScoresAreNumbers(t *testing.T) {
	t.Parallel()
	for text, reward := range map[string]float64{"nan": math.NaN(), "inf": math.Inf(1), "-inf": math.Inf(-1)} {
		res := faultyBench(t, &faultyProblem{reward: &reward}, nil).run(t)
		if got := exceptionType(res); got != exception.ValueError || !strings.Contains(res.ExceptionInfo.Message, "is "+text+",") || res.VerifierResult != nil {
			t.Errorf("exception %+v, rewards %s", res.ExceptionInfo, rewardsText(res))
		}
	}
}

// TestTheLastStepIsScoredByTheVerification: how long scoring takes is not charged to
// the agent, and is bounded by the verifier's limit alone.
func TestTheLastStepIsScoredByTheVerification(t *testing.T) {
	t.Parallel()
	slow := func(ctx context.Context) error {
		select {
		case <-time.After(10 * time.Second):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	score := func(agent, verifier float64) *jobdir.TrialResult {
		p := &faultyProblem{done: true, on: map[string]func(context.Context) error{"Evaluate": slow}}
		b := faultyBench(t, p, nil)
		b.cfg.Agent.OverrideTimeoutSec, b.cfg.Verifier.OverrideTimeoutSec = &agent, &verifier
		return b.runTimed(t)
	}
	res := score(2, 60)
	if got := rewardsText(res); got != "{'reward': 1.0}" || res.ExceptionInfo != nil {
		t.Fatalf("rewards %s, exception %+v", got, res.ExceptionInfo)
	}
	took := func(p *jobdir.Timing) time.Duration {
		return p.FinishedAt.In(time.UTC).Sub(p.StartedAt.In(time.UTC))
	}
	if a, v := took(res.AgentExecution), took(res.Verifier); a != 0 || v != 10*time.Second {
		t.Errorf("the agent took %v and the verification %v", a, v)
	}
	if got := exceptionType(score(60, 2)); got != exception.VerifierTimeoutError {
		t.Errorf("exception %q", got)
	}
}

// TestStepsAreLines: whatever an episode brings, its log is a bounded list of objects,
// the last of which is there, and an error has the type that the result gives it.
func TestStepsAreLines(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"many lines": strings.Repeat("x", 700), "long lines": strings.Repeat("y", 20_000)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &faultyProblem{text: text, on: map[string]func(context.Context) error{"Evaluate": func(context.Context) error { return errors.New("eval") }}}
			b := faultyBench(t, p, func(context.Context) ([]cube.Action, error) { return []cube.Action{cube.NewAction("look")}, nil })
			p.Metadata.RecommendedMaxSteps = new(50)
			b.OutputLimit = 16 << 10
			res := b.run(t)
			if got := exceptionType(res); got != exception.RuntimeError {
				t.Errorf("exception %q", got)
			}
			last := readLines(t, filepath.Join(b.dir, "agent", "steps.jsonl"), 17<<10)
			if last["error"] != "RuntimeError: eval" {
				t.Errorf("the last line is %v", last)
			}
		})
	}
}

// readLines checks that a file has JSON objects alone, and at most so many bytes, and
// returns the last one.
func readLines(t *testing.T, path string, most int64) (last map[string]any) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || info.Size() > most {
		t.Errorf("%v bytes (%v), want at most %d", info.Size(), err, most)
	}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		last = nil
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			t.Fatalf("line %q: %v", lines.Text(), err)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return last
}
