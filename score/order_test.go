package score_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// writeJob writes a finished job whose trials come in the given order, and
// started in the order of starts.
func writeJob(t *testing.T, rewards []value.Number, starts []int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "job")
	c := jobdir.NewConfig(time.Time{})
	path := "tasks/t"
	c.Tasks = []jobdir.TaskConfig{{Path: &path}}
	jobtest.Write(t, filepath.Join(dir, "config.json"), c.AppendJSON(nil, nil))
	a := score.NewAggregator(score.NewMetrics([]score.Metric{{Type: jobdir.MetricMean}, {Type: jobdir.MetricSum}}, nil))
	c.Metrics = []jobdir.MetricConfig{{Type: jobdir.MetricMean}, {Type: jobdir.MetricSum}}
	jobtest.Write(t, filepath.Join(dir, "config.json"), c.AppendJSON(nil, nil))
	for i, x := range rewards {
		started := jobdir.UTC(time.Date(2026, 6, 9, 8, 0, starts[i], 0, time.UTC))
		r := jobdir.TrialResult{
			TaskName: "t", TrialName: fmt.Sprintf("t__%07d", (i*7919)%10007), TaskID: c.Tasks[0].ID(),
			Config: jobdir.NewTrialConfig(c.Tasks[0]), AgentInfo: jobdir.AgentInfo{Name: "a", Version: "1"}, StartedAt: &started,
			VerifierResult: &jobdir.VerifierResult{Rewards: &reward.Rewards{}},
		}
		r.VerifierResult.Rewards.Set("reward", x)
		jobtest.Write(t, filepath.Join(dir, r.TrialName, "result.json"), r.AppendJSON(nil, nil))
		a.Add(jobdir.RecordOf(&r))
	}
	stats, err := a.Stats(len(rewards), 0)
	if err != nil {
		t.Fatal(err)
	}
	at := jobdir.Local(time.Date(2026, 6, 9, 10, 0, 0, 0, time.UTC))
	result := jobdir.Result{ID: uuid.UUID{1}, StartedAt: at, UpdatedAt: &at, FinishedAt: &at, NTotalTrials: len(rewards), Stats: stats}
	jobtest.Write(t, filepath.Join(dir, "result.json"), result.AppendJSON(nil))
	return dir
}

// TestOrderFromStored finds the order of a job whose trials started in another
// one, for instance after retries: sums agree to the last bit.
func TestOrderFromStored(t *testing.T) {
	t.Parallel()
	const n = 60
	random := rand.New(rand.NewPCG(3, 4))
	rewards := make([]value.Number, n)
	for i := range rewards {
		rewards[i] = value.Float([]float64{0.1, 0.7, 1e16, -1e16, 1.0 / 3}[random.IntN(5)])
	}
	dir := writeJob(t, rewards, random.Perm(n))
	data := jobtest.Read(t, filepath.Join(dir, "result.json"))
	r := rescore(t, dir)
	for _, d := range r.Check() {
		// The order between trials of different rewards is not recorded; only
		// sums can tell it.
		if !strings.Contains(d.Field, ".metrics[") {
			t.Error(d)
		}
	}
	if !strings.Contains(data, `"n_trials": 60`) || len(r.Records) != n {
		t.Errorf("got %d trials", len(r.Records))
	}
}

// TestOrderFromStart follows the plan, which is the order of starting, where
// the stored result leaves the order open.
func TestOrderFromStart(t *testing.T) {
	t.Parallel()
	rewards := []value.Number{value.Float(0.1), value.Float(1e16), value.Float(0.7), value.Float(-1e16), value.Float(0.1), value.Float(1e16)}
	starts := []int{1, 2, 3, 4, 5, 6}
	dir := writeJob(t, rewards, starts)
	for _, d := range rescore(t, dir).Check() {
		t.Error(d)
	}
}

// TestInfiniteRewards reads rewards that files cannot hold: null in the
// trial's file, a key of its own in the job's.
func TestInfiniteRewards(t *testing.T) {
	t.Parallel()
	inf, _ := value.FloatLiteral("inf")
	nan, _ := value.FloatLiteral("nan")
	rewards := []value.Number{inf, value.Float(1), nan, -inf, nan}
	dir := writeJob(t, rewards, []int{1, 2, 3, 4, 5})
	r := rescore(t, dir)
	for _, d := range r.Check() {
		t.Error(d)
	}
	if got, want := string(r.Result.AppendJSON(nil)), jobtest.Read(t, filepath.Join(dir, "result.json")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
