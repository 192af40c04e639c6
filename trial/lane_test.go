package trial_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
)

// slowBackend takes two seconds for each sandbox.
type slowBackend struct{ sandbox.Backend }

func (b slowBackend) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	time.Sleep(2 * time.Second)
	return b.Backend.Create(ctx, spec)
}

// atOnce runs three trials at once on a clock that stands still while something is done.
func atOnce(t *testing.T, b *bench, ctx context.Context) []*jobdir.TrialResult {
	t.Helper()
	results := make([]*jobdir.TrialResult, 3)
	var all sync.WaitGroup
	for n := range results {
		cfg := b.cfg
		cfg.TrialName = fmt.Sprintf("a-task__%07d", n)
		all.Go(func() {
			res, err := b.Run(ctx, cfg, 1)
			if err != nil {
				t.Error(err)
				return
			}
			results[n] = res
		})
	}
	all.Wait()
	return results
}

// starts are when a phase of trials began, in seconds after they did, in order.
func starts(results []*jobdir.TrialResult, phase func(*jobdir.TrialResult) *jobdir.Timing) string {
	var at []float64
	for _, res := range results {
		began, whole := phase(res).StartedAt.In(time.UTC), res.StartedAt.In(time.UTC)
		at = append(at, began.Sub(whole).Seconds())
	}
	slices.Sort(at)
	return fmt.Sprint(at)
}

// TestLanes: trials that build, or verify, wait for their turn, which belongs to no phase and
// no limit of one; an image that is there waits for nobody.
func TestLanes(t *testing.T) {
	t.Parallel()
	toml := "[verifier]\ntimeout_sec = 3.0\n[environment]\nbuild_timeout_sec = 3.0\n"
	for _, c := range []struct {
		name, toml        string
		builds, verifiers int
		built, verified   string // when phases began
		waits             string
	}{
		{"none", toml, 0, 0, "[0 0 0]", "[2 2 2]", ""},
		{"verifiers", toml, 0, 1, "[0 0 0]", "[2 4 6]", "waits for its turn: another trial verifies"},
		{"builds", toml, 2, 0, "[0 0 2]", "[2 2 4]", "waits for its turn: 2 other trials build"},
		{"both", toml, 1, 1, "[0 2 4]", "[2 4 6]", "waits for its turn: another trial builds"},
		{"no build", toml + "docker_image = \"i\"\n", 1, 0, "[0 0 0]", "[2 2 2]", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, goodTask().with("task.toml", c.toml), fake.Config{Rules: []fake.Rule{
				fake.On("/tests/test.sh", fake.Sleep(2*time.Second), fake.Write("/logs/verifier/reward.txt", "1")),
			}})
			b.Backend = slowBackend{b.Backend}
			synctest.Test(t, func(t *testing.T) {
				b.Builds, b.Verifiers = trial.NewLane(c.builds), trial.NewLane(c.verifiers)
				results := atOnce(t, b, t.Context())
				for _, res := range results {
					if rewardsText(res)+exceptionType(res) != "{'reward': 1.0}" {
						t.Errorf("%s: %s %s", res.TrialName, rewardsText(res), exceptionType(res))
					}
				}
				built := starts(results, func(r *jobdir.TrialResult) *jobdir.Timing { return r.EnvironmentSetup })
				verified := starts(results, func(r *jobdir.TrialResult) *jobdir.Timing { return r.Verifier })
				if built != c.built || verified != c.verified {
					t.Errorf("built at %s, verified at %s", built, verified)
				}
			})
			logs := ""
			for n := range 3 {
				text, err := os.ReadFile(filepath.Join(b.cfg.TrialsDir, fmt.Sprintf("a-task__%07d", n), "trial.log"))
				if err != nil {
					t.Fatal(err)
				}
				logs += string(text)
			}
			if strings.Contains(logs, "waits for") != (c.waits != "") || !strings.Contains(logs, c.waits) {
				t.Errorf("logs:\n%s", logs)
			}
		})
	}
}

// TestLaneInterrupted: a trial that waits for its turn ends as cancelled, and leaves the turn
// to others.
func TestLaneInterrupted(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{rewardRule("reward.txt", "1")}})
	b.Backend = slowBackend{b.Backend}
	synctest.Test(t, func(t *testing.T) {
		b.Builds = trial.NewLane(1)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		defer cancel()
		for _, res := range atOnce(t, b, ctx) {
			if exceptionType(res) != exception.CancelledError {
				t.Errorf("%s: %s", res.TrialName, exceptionType(res))
			}
		}
		if res := b.run(t); rewardsText(res) != "{'reward': 1.0}" {
			t.Errorf("afterwards: %s %s", rewardsText(res), exceptionType(res))
		}
	})
}
