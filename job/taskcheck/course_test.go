package taskcheck_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/job/taskcheck"
	"github.com/proctor-run/proctor/sandbox"
)

// TestCourse goes through the checks of a task whose solution works and of one
// whose solution does not: without network only the first is tried.
func TestCourse(t *testing.T) {
	t.Parallel()
	good := &taskcheck.Subject{Dir: "good", Report: taskcheck.NewReport("good"), Goal: 1, Config: harbor.DefaultConfig()}
	bad := &taskcheck.Subject{Dir: "bad", Report: taskcheck.NewReport("bad"), Goal: 1, Config: harbor.DefaultConfig()}
	var batches []string
	var amended bool
	course := taskcheck.Course{
		Repeats: 2, Environment: "fake", Can: sandbox.Capabilities{NoNetwork: true, SwitchNetwork: true},
		Run: func(_ context.Context, b taskcheck.Batch) ([][]taskcheck.Trial, error) {
			line := b.Name
			var all [][]taskcheck.Trial
			for _, s := range b.Tasks {
				line += " " + s.Dir
				reward := "1"
				if s == bad {
					reward = "0"
				}
				var trials []taskcheck.Trial
				for _, role := range b.Roles {
					text := reward
					if role.Kind == taskcheck.KindNop || role.Kind == taskcheck.KindChannel {
						text = "0"
					}
					trial := got(role.Kind, text, "")
					trial.Role = role
					trials = append(trials, trial)
				}
				all = append(all, trials)
			}
			amended = amended || b.Amend != nil && b.Name == "offline"
			batches = append(batches, line)
			return all, nil
		},
	}
	if err := course.Check(t.Context(), []*taskcheck.Subject{good, bad}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"reference good bad", "offline good", "channel good bad"}; !slices.Equal(batches, want) {
		t.Errorf("batches are %q, want %q", batches, want)
	}
	if !amended {
		t.Error("the offline batch runs with its network")
	}
	if !good.Report.Passed || bad.Report.Passed {
		t.Errorf("reports passed: good %v, bad %v; want only the good one", good.Report.Passed, bad.Report.Passed)
	}

	broken := errors.New("no space left")
	course.Run = func(context.Context, taskcheck.Batch) ([][]taskcheck.Trial, error) { return nil, broken }
	if err := course.Check(t.Context(), []*taskcheck.Subject{good}); !errors.Is(err, broken) {
		t.Errorf("got %v, want what kept a batch from running", err)
	}
}
