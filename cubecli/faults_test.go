package cubecli_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	goruntime "runtime"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cubecli"
	"github.com/proctor-run/proctor/internal/exitcode"
)

// TestInterruptedSetup: a signal reaches what sets a cube up, and one that does not
// listen is not waited for at the second.
func TestInterruptedSetup(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.cubes = []cubecli.Cube{guess{setup: func(ctx context.Context) error {
		p.signals <- os.Interrupt
		<-ctx.Done()
		return ctx.Err()
	}}.cube()}
	p.job("listens").want(t, exitcode.Interrupted)

	release := make(chan struct{})
	defer close(release)
	p.cubes = []cubecli.Cube{guess{setup: func(context.Context) error {
		p.signals <- os.Interrupt
		p.signals <- syscall.SIGTERM
		<-release
		return nil
	}}.cube()}
	p.job("deaf").want(t, exitcode.Interrupted, "setting the cube up")
	if _, err := os.Stat(p.path("jobs")); err == nil {
		t.Error("a job was begun")
	}
}

// TestDeafAction: an action that does not return ends at the second signal, as a
// cancelled trial that is recorded, and the job can be resumed.
func TestDeafAction(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	deaf := true
	p := newProgram(t)
	p.cubes = []cubecli.Cube{guess{act: func() error {
		if !deaf {
			return nil
		}
		p.signals <- os.Interrupt
		p.signals <- os.Interrupt
		<-release
		return nil
	}}.cube()}
	p.job("j", "-n", "1").want(t, exitcode.Interrupted, "to resume it: ")
	close(release)
	deaf = false
	p.run("resume", p.path("jobs", "j")).want(t, exitcode.OK, "after CancelledError", "Mean 1.000 over 3 tasks")
}

// TestFaultyAgents: a fault of an agent ends its trial alone, which is counted.
func TestFaultyAgents(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(){"panic": func() { panic("agent") }, "goexit": goruntime.Goexit} {
		for _, where := range []string{"factory", "act"} {
			t.Run(name+" in "+where, func(t *testing.T) {
				t.Parallel()
				c := guess{}.cube()
				c.Agent = func(task cube.TaskConfig) cube.Agent {
					if task.TaskID() != "two" {
						return solve(task)
					}
					if where == "factory" {
						fault()
					}
					return cube.AgentFunc(func(context.Context, *cube.Observation, []cube.ActionSchema) ([]cube.Action, error) {
						fault()
						return nil, nil
					})
				}
				newProgram(t, c).job("j").want(t, exitcode.TrialErrors, "3 trials: 2 scored", "1 errored without one", "RuntimeError")
			})
		}
	}
}

// TestNoScore: a reward that is no number is an error of its trial.
func TestNoScore(t *testing.T) {
	t.Parallel()
	newProgram(t, guess{score: math.NaN()}.cube()).job("j").want(t, exitcode.TrialErrors, "ValueError", "3 errored without one")
}

// TestSeeds: a task is run once per seed, and a resume finds each of them again.
func TestSeeds(t *testing.T) {
	t.Parallel()
	p := newProgram(t, guess{seeds: &cube.BasicSeedGenerator{NSeed: 2}}.cube())
	p.job("j", "-t", "two").want(t, exitcode.OK, "Mean 1.000 over 2 tasks")
	trials, err := filepath.Glob(p.path("jobs", "j", "two@*"))
	if err != nil || len(trials) != 2 {
		t.Fatalf("trials %q (%v), want one per seed", trials, err)
	}
	if err := os.RemoveAll(trials[1]); err != nil {
		t.Fatal(err)
	}
	p.run("resume", p.path("jobs", "j")).want(t, exitcode.OK, "1 trial of 2 kept, 1 to run", "Mean 1.000 over 2 tasks")
}

func TestResumeErrored(t *testing.T) {
	t.Parallel()
	p := newProgram(t, guess{score: math.NaN()}.cube())
	p.job("j").want(t, exitcode.TrialErrors)
	p.cubes = []cubecli.Cube{guess{}.cube()}
	p.run("resume", p.path("jobs", "j")).want(t, exitcode.TrialErrors, "3 trials of 3 kept")
	p.run("resume", p.path("jobs", "j"), "--retry-errored", "--dry-run").want(t, exitcode.OK, "3 to run", "after ValueError")
	p.run("resume", p.path("jobs", "j"), "-f", "ValueError").want(t, exitcode.OK, "Mean 1.000 over 3 tasks")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	newProgram(t, guess{}.cube()).run("--version").want(t, exitcode.OK, "guess version", "(proctor ")
}
