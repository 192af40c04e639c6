package cube_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/cube"
)

// turnTool waits in each action until it is let go, its context ends or, when it
// is deaf, until it is closed.
type turnTool struct {
	deaf    bool
	inside  atomic.Int64
	most    atomic.Int64
	calls   atomic.Int64
	entered chan struct{}
	release chan struct{}
	closed  chan struct{}
	once    sync.Once
}

func (*turnTool) Actions() []cube.ActionSchema {
	return []cube.ActionSchema{{Name: "wait", Description: "Wait."}}
}

func (w *turnTool) Execute(ctx context.Context, _ cube.Action) (cube.Result, error) {
	w.calls.Add(1)
	w.most.Store(max(w.most.Load(), w.inside.Add(1)))
	defer w.inside.Add(-1)
	if w.entered != nil {
		w.entered <- struct{}{}
	}
	if w.release == nil {
		return cube.Observed(cube.Observe(cube.Text("done"))), nil
	}
	done := ctx.Done()
	if w.deaf {
		done = nil
	}
	select {
	case <-w.release:
	case <-done:
		return cube.Failed(ctx.Err()), nil
	case <-w.closed:
		return cube.Failed(errors.New("the tool was closed")), nil
	}
	return cube.Observed(cube.Observe(cube.Text("done"))), nil
}

func (w *turnTool) Reset(context.Context) error { w.calls.Add(1); return nil }

func (w *turnTool) Close(context.Context) error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

type turnProblem struct {
	cube.TaskBase[cube.Metadata]
	evaluations atomic.Int64
}

func (p *turnProblem) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	return cube.Observe(cube.Text("go")), nil, p.Tool().Reset(ctx)
}

func (p *turnProblem) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	p.evaluations.Add(1)
	return 1, nil, nil
}

func (*turnProblem) PrivilegedInfo(context.Context) (cube.Content, error) {
	return cube.Text("secret"), nil
}

func (p *turnProblem) Status() string {
	if n := p.evaluations.Load(); n > 0 {
		return fmt.Sprintf("fine, after %d", n)
	}
	return "fine"
}

func turnTask(t *testing.T, tool *turnTool) (*cube.Task, *turnProblem) {
	t.Helper()
	tool.closed = make(chan struct{})
	p := &turnProblem{}
	p.Metadata = &cube.TaskMetadata{ID: "t"}
	p.ToolConfig = &scriptedConfig{tool: tool}
	task, err := cube.NewTask(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return task, p
}

func TestCallersTakeTurns(t *testing.T) {
	t.Parallel()
	tool := &turnTool{}
	task, _ := turnTask(t, tool)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, _, err := task.Reset(t.Context())
			_, err2 := task.Step(t.Context(), cube.NewAction("wait"), cube.NewAction("wait"))
			_, _, err3 := task.Evaluate(t.Context(), nil)
			task.ActionSet()
			task.Status()
			if err := errors.Join(err, err2, err3); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	equal(t, "inside at once", tool.most.Load(), 1)
	if err := task.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCloseInterrupts(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tool := &turnTool{deaf: deaf, entered: make(chan struct{}, 1), release: make(chan struct{})}
			task, problem := turnTask(t, tool)
			inside, waiting := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := task.Step(t.Context(), cube.NewAction("wait"))
				inside <- err
			}()
			<-tool.entered
			go func() {
				_, _, err := task.Reset(t.Context())
				waiting <- err
			}()
			synctest.Wait()
			start := time.Now()
			if err := task.Close(t.Context()); err != nil {
				t.Error(err)
			}
			took := time.Since(start)
			for _, c := range []chan error{inside, waiting} {
				if err := <-c; !errors.Is(err, cube.ErrClosed) {
					t.Errorf("deaf %v: got %v", deaf, err)
				}
			}
			if deaf != (took > time.Second) || took > 10*time.Second {
				t.Errorf("deaf %v: Close took %v", deaf, took)
			}
			equal(t, "evaluations", problem.evaluations.Load(), 0)
		})
	}
}

func TestStatusDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tool := &turnTool{entered: make(chan struct{}, 1), release: make(chan struct{})}
		task, problem := turnTask(t, tool)
		begin := func() (ended chan error) {
			ended = make(chan error, 1)
			go func() {
				_, err := task.Step(t.Context(), cube.NewAction("wait"))
				ended <- err
			}()
			<-tool.entered
			return ended
		}
		ended := begin()
		equal(t, "status that was never asked for before", task.Status(), "")
		tool.release <- struct{}{}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		equal(t, "status between steps", task.Status(), "fine")
		problem.evaluations.Store(2)
		ended = begin()
		equal(t, "status while an action runs", task.Status(), "fine")
		tool.release <- struct{}{}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		equal(t, "status after it", task.Status(), "fine, after 2")
		if err := task.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAfterClose(t *testing.T) {
	t.Parallel()
	tool := &turnTool{}
	task, problem := turnTask(t, tool)
	for range 2 {
		if err := task.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, _, resetErr := task.Reset(t.Context())
	_, stepErr := task.Step(t.Context(), cube.NewAction("wait"))
	_, _, evaluateErr := task.Evaluate(t.Context(), nil)
	_, privilegedErr := task.PrivilegedInfo(t.Context())
	for _, err := range []error{resetErr, stepErr, evaluateErr, privilegedErr} {
		if !errors.Is(err, cube.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	equal(t, "calls of the tool", tool.calls.Load(), 0)
	equal(t, "evaluations", problem.evaluations.Load(), 0)
	equal(t, "actions", len(task.ActionSet()), 0)
	equal(t, "status", task.Status(), "fine")
}

func TestContextThatHasEnded(t *testing.T) {
	t.Parallel()
	tool := &turnTool{}
	task, problem := turnTask(t, tool)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, resetErr := task.Reset(ctx)
	_, stepErr := task.Step(ctx, cube.NewAction("wait"))
	_, _, evaluateErr := task.Evaluate(ctx, nil)
	for _, err := range []error{resetErr, stepErr, evaluateErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	equal(t, "calls of the tool", tool.calls.Load(), 0)
	equal(t, "evaluations", problem.evaluations.Load(), 0)
	if _, err := task.Step(t.Context(), cube.NewAction("wait")); err != nil {
		t.Error(err)
	}
	if err := task.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	tool := &turnTool{entered: make(chan struct{}, 1), release: make(chan struct{})}
	task, _ := turnTask(t, tool)
	inside := make(chan error, 1)
	go func() {
		_, err := task.Step(t.Context(), cube.NewAction("wait"))
		inside <- err
	}()
	<-tool.entered
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := task.Reset(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(tool.release)
	if err := <-inside; err != nil {
		t.Error(err)
	}
}

func TestActionSetAfterAPanic(t *testing.T) {
	t.Parallel()
	p := &leakyProblem{fault: fault{"FilterActions", true}}
	p.Metadata = &cube.TaskMetadata{ID: "t"}
	p.ToolConfig = &leakyConfig{tool: &leakyTool{}}
	task, err := cube.NewTask(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if actions := task.ActionSet(); actions != nil {
			t.Errorf("got %v", actions)
		}
	}
}
