package cube_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// exitingProblem ends its goroutine in one hook, as a helper of tests does that
// calls t.FailNow.
type exitingProblem struct {
	cube.TaskBase[cube.Metadata]
	at string
}

func (p *exitingProblem) exit(hook string) {
	if p.at == hook {
		runtime.Goexit()
	}
}

func (p *exitingProblem) Reset(context.Context) (*cube.Observation, cube.Info, error) {
	p.exit("Reset")
	return cube.Observe(cube.Text("go")), nil, nil
}

func (p *exitingProblem) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	p.exit("Evaluate")
	return 1, nil, nil
}

func (p *exitingProblem) Finished(context.Context, *cube.Observation) (bool, error) {
	p.exit("Finished")
	return false, nil
}

func (p *exitingProblem) PostprocessObs(_ context.Context, obs *cube.Observation) (*cube.Observation, error) {
	p.exit("PostprocessObs")
	return obs, nil
}

func (p *exitingProblem) FilterActions(all []cube.ActionSchema) []cube.ActionSchema {
	p.exit("FilterActions")
	return all
}

func (p *exitingProblem) PrivilegedInfo(context.Context) (cube.Content, error) {
	p.exit("PrivilegedInfo")
	return cube.Text("secret"), nil
}

func (p *exitingProblem) Status() string {
	p.exit("Status")
	return "fine"
}

func (p *exitingProblem) Close(context.Context) error {
	p.exit("Close")
	return nil
}

// elsewhere calls f on a goroutine that f may end.
func elsewhere(f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	<-ended
}

// TestGoexitClosesAtOnce: a hook that ends its goroutine takes its caller with it,
// and nobody else: the task is closed, what it held is released, and the next
// caller is told.
func TestGoexitClosesAtOnce(t *testing.T) {
	t.Parallel()
	for _, hook := range []string{"Reset", "Evaluate", "Finished", "PostprocessObs", "FilterActions", "PrivilegedInfo", "Status", "Close"} {
		t.Run(hook, func(t *testing.T) {
			t.Parallel()
			backend := fake.New(fake.Config{Dir: t.TempDir()})
			p := &exitingProblem{at: hook}
			p.Metadata = &cube.TaskMetadata{ID: "t", ContainerConfig: cube.NewContainerConfig("img")}
			p.ToolConfig = &scriptedConfig{tool: &turnTool{closed: make(chan struct{})}}
			p.ContainerBackend = cube.NewLocalContainerBackend(backend)
			task, err := cube.NewTask(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			elsewhere(func() {
				_, _, _ = task.Reset(t.Context())
				task.ActionSet()
				task.Status()
				_, _ = task.PrivilegedInfo(t.Context())
				_, _ = task.Step(t.Context(), cube.NewAction("wait"))
				_, _, _ = task.Evaluate(t.Context(), nil)
				_ = task.Close(t.Context())
			})
			if n := backend.Live(); n != 0 {
				t.Errorf("%d sandboxes are left", n)
			}
			_, err = task.Step(t.Context(), cube.NewAction("wait"))
			if hook == "Close" {
				if !errors.Is(err, cube.ErrClosed) {
					t.Errorf("got %v", err)
				}
				return
			}
			if _, ok := errors.AsType[*cube.ExitError](err); !ok || cube.ErrorType(err) != "RuntimeError" {
				t.Errorf("got %v", err)
			}
			if err := task.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

type exitingToolConfig struct{ scriptedConfig }

func (*exitingToolConfig) Make(context.Context, cube.Container) (cube.Tool, error) {
	runtime.Goexit()
	return nil, errors.New("not reached")
}

// TestGoexitWhileMaking: what was launched for a task that is never made is
// stopped.
func TestGoexitWhileMaking(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{Dir: t.TempDir()})
	p := &exitingProblem{}
	p.Metadata = &cube.TaskMetadata{ID: "t", ContainerConfig: cube.NewContainerConfig("img")}
	p.ToolConfig = &exitingToolConfig{}
	p.ContainerBackend = cube.NewLocalContainerBackend(backend)
	made := false
	elsewhere(func() {
		_, _ = cube.NewTask(t.Context(), p)
		made = true
	})
	if n := backend.Live(); made || n != 0 {
		t.Errorf("made %v, %d sandboxes are left", made, n)
	}
}
