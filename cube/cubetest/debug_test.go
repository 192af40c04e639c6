package cubetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubetest"
	"github.com/proctor-run/proctor/cube/internal/democube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

// Variations of the demo task.

type noActions struct{ democube.Task }

func (*noActions) FilterActions([]cube.ActionSchema) []cube.ActionSchema { return nil }

type badReset struct{ democube.Task }

func (*badReset) Reset(context.Context) (*cube.Observation, cube.Info, error) {
	return nil, nil, cube.RuntimeErrorf("reset failed")
}

type secondClose struct {
	democube.Task
	closed int
}

func (s *secondClose) Close(context.Context) error {
	if s.closed++; s.closed > 1 {
		return cube.RuntimeErrorf("closed before")
	}
	return nil
}

func always(a cube.Action) cube.Agent {
	return cube.AgentFunc(func(context.Context, *cube.Observation, []cube.ActionSchema) ([]cube.Action, error) {
		return []cube.Action{a}, nil
	})
}

// variation is what the "setup" of an episode case says.
type variation struct {
	problem cube.Problem
	agent   cube.Agent
}

func variationOf(id string) (variation, bool) {
	count := always(cube.NewAction("count", "by", 1))
	demo := &democube.Task{Target: 3}
	switch id {
	case "episode-success", "episode-zero-steps":
		return variation{demo, count}, true
	case "episode-max-steps":
		return variation{demo, always(cube.NewAction("greet", "name", "x"))}, true
	case "episode-stop-early":
		return variation{demo, always(cube.Stop())}, true
	case "episode-action-error":
		return variation{demo, always(cube.NewAction("fail"))}, true
	case "episode-unknown-action":
		return variation{demo, always(cube.NewAction("nope"))}, true
	case "episode-agent-raises":
		return variation{demo, cube.AgentFunc(func(context.Context, *cube.Observation, []cube.ActionSchema) ([]cube.Action, error) {
			return nil, &exception.Error{Type: exception.StopIteration, Message: "All done"}
		})}, true
	case "episode-no-actions":
		return variation{&noActions{democube.Task{Target: 3}}, count}, true
	case "episode-reset-fails":
		return variation{&badReset{democube.Task{Target: 3}}, count}, true
	case "episode-second-close-raises":
		return variation{&secondClose{Task: democube.Task{Target: 3}}, count}, true
	}
	return variation{}, false
}

func frozen() time.Time { return time.Unix(0, 0) }

func get(c *cube.Object, key string) cube.Value {
	v, _ := c.Get(key)
	return v
}

func str(c *cube.Object, key string) string {
	s, _ := get(c, key).(cube.Str)
	return string(s)
}

func compact(v cube.Value) string { return string(value.AppendPydantic(nil, v, 0)) }

func TestVectors(t *testing.T) {
	t.Parallel()
	v, err := value.Decode(vectors.File(t, "cube/debug_harness.json"))
	if err != nil {
		t.Fatal(err)
	}
	cases := get(v.(*cube.Object), "cases").(cube.List)
	reg := cube.NewRegistry(cube.Options{})
	for _, item := range cases {
		c := item.(*cube.Object)
		t.Run(str(c, "id"), func(t *testing.T) {
			t.Parallel()
			runCase(t, reg, c)
		})
	}
	t.Logf("debug_harness.json: %d cases", len(cases))
}

func runCase(t *testing.T, reg *cube.Registry, c *cube.Object) {
	switch str(c, "op") {
	case "run_debug_episode":
		runEpisode(t, c)
	case "aggregate_profiling":
		var profiles []cube.Value
		for _, r := range get(c, "reports").(cube.List) {
			profiles = append(profiles, get(r.(*cube.Object), "profiling"))
		}
		if diff := cmp.Diff(compact(get(c, "result")), compact(cubetest.AggregateProfiling(profiles...))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	case "step_latency_percentiles":
		var times []float64
		for _, x := range get(c, "step_times").(cube.List) {
			times = append(times, float64(x.(cube.Float)))
		}
		for key, p := range map[string]float64{"p50": 0.50, "p95": 0.95, "p99": 0.99} {
			if got := cubetest.Percentile(times, p); cube.Float(got) != get(c, key) {
				t.Errorf("%s: %v, want %v", key, got, get(c, key))
			}
		}
	case "format_observation_diff":
		var obs [2]*cube.Observation
		for i, key := range []string{"first", "second"} {
			var err error
			if obs[i], err = cube.FromValue[*cube.Observation](reg, get(c, key)); err != nil {
				t.Fatal(err)
			}
		}
		got, err := cubetest.ObservationDiff(obs[0], obs[1])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(str(c, "diff"), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	default:
		t.Skipf("unknown op %q", str(c, "op"))
	}
}

func runEpisode(t *testing.T, c *cube.Object) {
	v, ok := variationOf(str(c, "id"))
	if !ok {
		t.Skipf("unknown setup %q", str(c, "setup"))
	}
	cfg := &democube.TaskConfig{Target: 3}
	cfg.Metadata = democube.NewMetadata("task-1")
	task, err := cfg.Build(t.Context(), cube.RuntimeContext{}, nil, v.problem, democube.NewToolConfig())
	if err != nil {
		t.Fatal(err)
	}
	task.SetClock(frozen)
	maxSteps, _ := get(c, "max_steps").(cube.Int).Int64()
	report, err := cubetest.RunEpisode(t.Context(), task, v.agent, int(maxSteps), frozen)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(compact(get(c, "report")), compact(report.Object())); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}
