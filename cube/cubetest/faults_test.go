package cubetest_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubetest"
)

// A cube that pays for what the last step saw, and whose parts do what a test says.

type faultMetadata struct{ cube.TaskMetadata }

func (*faultMetadata) TypeName() string { return "fault_cube.Metadata" }

// faults are what the parts of the cube do, by their names.
type faults map[string]func()

func (f faults) at(where string) {
	if do := f[where]; do != nil {
		do()
	}
}

type faultTool struct{ faults }

func (*faultTool) TypeName() string { return "fault_cube.ToolConfig" }

func (c *faultTool) Make(context.Context, cube.Container) (cube.Tool, error) {
	c.at("Make")
	return cube.NewActionTool("FaultTool", cube.Func("look", "Look around.", func(context.Context, struct{}) (any, error) {
		c.at("look")
		return "the door is open", nil
	}))
}

type faultTask struct {
	cube.TaskBase[*faultMetadata]
	faults
}

func (p *faultTask) Reset(context.Context) (*cube.Observation, cube.Info, error) {
	p.at("Reset")
	return cube.Observe(cube.Text("Look for a way out.")), nil, nil
}

func (p *faultTask) Finished(context.Context, *cube.Observation) (bool, error) {
	p.at("Finished")
	return false, nil
}

func (p *faultTask) Evaluate(_ context.Context, obs *cube.Observation) (float64, cube.Info, error) {
	p.at("Evaluate")
	if obs == nil || len(obs.Contents) == 0 {
		return 0, nil, nil
	}
	if text, err := obs.Contents[0].Markdown(); err != nil || !strings.Contains(text, "open") {
		return 0, nil, err
	}
	return 1, nil, nil
}

func (p *faultTask) Close(context.Context) error {
	p.at("Close")
	return nil
}

type faultTaskConfig struct {
	cube.TaskConfigBase[*faultMetadata]
	faults
}

func (*faultTaskConfig) TypeName() string { return "fault_cube.TaskConfig" }

func (c *faultTaskConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	return c.Build(ctx, rc, b, &faultTask{faults: c.faults}, &faultTool{c.faults})
}

type faultConfig struct {
	cube.BenchmarkConfigBase
	faults
}

func (*faultConfig) TypeName() string { return "fault_cube.Config" }

func (c *faultConfig) ConfigureTask(cfg cube.TaskConfig) error {
	if own, ok := cfg.(*faultTaskConfig); ok {
		own.faults = c.faults
	}
	return nil
}

func (c *faultConfig) Definition() cube.Definition {
	return cube.Definition{
		Metadata: &cube.BenchmarkMetadata{Name: "fault-cube", Version: "1", Description: "Ways out."},
		Tasks: []cube.Metadata{
			&faultMetadata{cube.TaskMetadata{ID: "a"}}, &faultMetadata{cube.TaskMetadata{ID: "b"}},
		},
		TaskConfig: &faultTaskConfig{},
		Runtime:    func() cube.Runtime { return faultRuntime{c.faults} },
	}
}

type faultRuntime struct{ faults }

func (r faultRuntime) Setup(context.Context, *cube.Setup) error { r.at("Setup"); return nil }
func (faultRuntime) Close(context.Context) error                { return nil }

// subject is the cube under test; its debug agent looks once and does nothing more.
func (f faults) subject(t *testing.T) cubetest.Subject {
	t.Helper()
	return cubetest.Subject{
		Register: func(r *cube.Registry) error {
			return r.Add(&faultMetadata{}, &faultTool{f}, &faultTaskConfig{faults: f}, &faultConfig{faults: f})
		},
		Config: &faultConfig{faults: f}, Options: cube.Options{CacheRoot: t.TempDir()},
		Agent: func(cube.TaskConfig) cube.Agent {
			f.at("factory")
			looked := false
			return cube.AgentFunc(func(context.Context, *cube.Observation, []cube.ActionSchema) ([]cube.Action, error) {
				f.at("Act")
				if looked {
					return nil, nil
				}
				looked = true
				return []cube.Action{cube.NewAction("look")}, nil
			})
		},
	}
}

// failed names the checks that failed, and fails the test where one is missing.
func (f faults) failed(t *testing.T) map[string]string {
	t.Helper()
	results, err := cubetest.Check(t.Context(), f.subject(t))
	if err != nil || len(results) != len(cubetest.Checks()) {
		t.Fatalf("%d results (%v), want %d", len(results), err, len(cubetest.Checks()))
	}
	failed := map[string]string{}
	for _, r := range results {
		if r.Status == cubetest.Fail {
			failed[r.Check] = r.Reason
		}
	}
	return failed
}

// TestAgentsThatDoNothingMore: such an agent is scored on what was seen last.
func TestAgentsThatDoNothingMore(t *testing.T) {
	t.Parallel()
	if failed := (faults{}).failed(t); len(failed) > 0 {
		t.Errorf("failed: %v", failed)
	}
}

// TestFaultsFailTheirCheck: a panic and the end of a goroutine, anywhere, fail checks
// and episodes, and end nothing else.
func TestFaultsFailTheirCheck(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(){"panic": func() { panic("oh") }, "goexit": runtime.Goexit} {
		for _, where := range []string{"factory", "Act", "Make", "Reset", "look", "Finished", "Evaluate", "Close", "Setup"} {
			t.Run(name+" in "+where, func(t *testing.T) {
				t.Parallel()
				f := faults{where: fault}
				if failed := f.failed(t); len(failed) == 0 {
					t.Error("every check passes")
				}
				s := f.subject(t)
				r := cube.NewRegistry(s.Options)
				if err := s.Register(r); err != nil {
					t.Fatal(err)
				}
				reports, err := cubetest.Suite{Registry: r, Config: s.Config, Agent: s.Agent}.Run(t.Context())
				if where == "Setup" {
					if err == nil {
						t.Error("the suite ran")
					}
					return
				}
				if err != nil || len(reports) != 2 {
					t.Fatalf("%d reports (%v), want 2", len(reports), err)
				}
				for _, r := range reports {
					if r.Passed() || r.TaskID == "" {
						t.Errorf("report %+v", r)
					}
				}
			})
		}
	}
}

// TestSharedState: a cube whose tasks count in one variable is found out, however
// short its episodes are.
func TestSharedState(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	counter := 0
	count := func(n int) func() {
		return func() {
			mu.Lock()
			defer mu.Unlock()
			if counter += n; n == 0 {
				counter = 0
			}
		}
	}
	f := faults{"Reset": count(0), "look": count(1)}
	f["Evaluate"] = func() {
		mu.Lock()
		defer mu.Unlock()
		if counter > 1 {
			panic("somebody else looked, too")
		}
	}
	failed := f.failed(t)
	if _, found := failed["parallel"]; !found || len(failed) != 1 {
		t.Errorf("failed: %v, want the parallel check alone", failed)
	}
}

// TestTheSameIsToldOnce: where no task can be made, the reason is not repeated for
// every task and every check.
func TestTheSameIsToldOnce(t *testing.T) {
	t.Parallel()
	results, err := cubetest.Check(t.Context(), faults{"Make": func() { panic("there is no image") }}.subject(t))
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, r := range results {
		said += strings.Count(r.Reason, "there is no image")
	}
	if said == 0 || said > 4 {
		t.Errorf("the reason is told %d times in\n%+v", said, results)
	}
}
