package score_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/score"
)

// TestCheckFixtures finds directories written by Harbor itself in order.
func TestCheckFixtures(t *testing.T) {
	t.Parallel()
	for _, name := range jobtest.Fixtures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := name
			r := rescore(t, dir)
			for _, d := range r.Check() {
				t.Error(d)
			}
			if len(r.Warnings) > 0 {
				t.Errorf("warnings: %v", r.Warnings)
			}
			jobtest.EqualText(t, string(r.Result.AppendJSON(nil)), jobtest.Read(t, filepath.Join(dir, "result.json")))
		})
	}
}

// TestCheckNamesTrial changes one byte in each reward of each fixture.
func TestCheckNamesTrial(t *testing.T) {
	t.Parallel()
	changes := 0
	for _, name := range jobtest.Fixtures() {
		for _, path := range jobtest.Glob(t, filepath.Join(name, "*", "result.json")) {
			data := jobtest.Read(t, path)
			at := strings.Index(data, `"rewards": {`)
			if at < 0 {
				continue
			}
			digit := at + strings.IndexAny(data[at:], "0123456789")
			changed := []byte(data)
			changed[digit] = '0' + (changed[digit]-'0'+4)%10
			dir := jobtest.Copy(t, filepath.Dir(filepath.Dir(path)))
			trialName := filepath.Base(filepath.Dir(path))
			jobtest.Write(t, filepath.Join(dir, trialName, "result.json"), changed)
			if !mentions(rescore(t, dir).Check(), trialName, "verifier_result.rewards.") {
				t.Errorf("%s: the change from %q is not reported with trial and field", path, data[digit])
			}
			changes++
		}
	}
	t.Logf("%d changes", changes)
}

func mentions(differences []score.Difference, trialName, field string) bool {
	for _, d := range differences {
		if d.Trial == trialName && strings.HasPrefix(d.Field, field) && strings.Contains(d.String(), trialName) {
			return true
		}
	}
	return false
}

func TestCheckReports(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		old, new string // in result.json of the job
		want     string
	}{
		{"count", `"n_completed_trials": 8`, `"n_completed_trials": 7`, "stats.n_completed_trials: stored 7, computed 8"},
		{"mean", `"mean": 0.35833333333333334`, `"mean": 0.3583333333333333`, "stats.evals.oracle__mixed.metrics[0].mean: stored 0.3583333333333333, computed 0.35833333333333334"},
		{"kind", `"1.0": [`, `"1": [`, `trial "write-greeting__CWQUuue": verifier_result.rewards.reward: stored 1, computed 1.0`},
		{"exception", `"RewardFileNotFoundError": [`, `"RewardFileEmptyError": [`, `trial "no-reward__mykdz9v": exception_info.exception_type: stored RewardFileEmptyError, computed RewardFileNotFoundError`},
		{"cost", `"cost_usd": null`, `"cost_usd": 0.5`, "stats.cost_usd: stored 0.5, computed null"},
		{"pass at k", `"pass_at_k": {}`, `"pass_at_k": {"2": 1.0}`, "stats.evals.oracle__mixed.pass_at_k.2: stored 1.0, computed nothing"},
		{"group", `"oracle__mixed": {`, `"oracle__other": {`, `trial "tenth__6fLdomV": verifier_result.rewards.reward: stored nothing, computed 0.1`},
		{"ghost", `"tenth__6fLdomV",`, `"tenth__6fLdomV", "ghost__1234567",`, `trial "ghost__1234567": verifier_result.rewards.reward: stored 0.1, computed nothing`},
		{"spelling only", `"mean": 0.35833333333333334`, `"mean": 35.833333333333334e-2`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := jobtest.Copy(t, jobtest.Fixture("mixed-oracle"))
			path := filepath.Join(dir, "result.json")
			data := jobtest.Read(t, path)
			if !strings.Contains(data, tt.old) {
				t.Fatalf("the fixture has no %s", tt.old)
			}
			jobtest.Write(t, path, []byte(strings.Replace(data, tt.old, tt.new, 1)))
			var lines []string
			for _, d := range rescore(t, dir).Check() {
				lines = append(lines, d.String())
			}
			all := strings.Join(lines, "\n")
			if tt.want == "" && all != "" || !strings.Contains(all, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", all, tt.want)
			}
		})
	}
}

func TestRescoreUnreadableTrial(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, old, new, want string }{
		{"truncated", "\n}", "", "one-score__4Ucooi9"},
		{"wrong type", `"task_name": "one-score"`, `"task_name": 5`, "task_name"},
		{"missing", `"task_checksum"`, `"checksum"`, "task_checksum"},
		{"text for a reward", `"correctness": 0.3`, `"correctness": "much"`, "verifier_result.rewards.correctness"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := jobtest.Copy(t, jobtest.Fixture("multi-oracle"))
			path := filepath.Join(dir, "one-score__4Ucooi9", "result.json")
			data := jobtest.Read(t, path)
			changed := strings.Replace(data, tt.old, tt.new, 1)
			if changed == data {
				t.Fatalf("the fixture has no %q", tt.old)
			}
			if tt.name == "truncated" {
				changed = data[:len(data)/2]
			}
			jobtest.Write(t, path, []byte(changed))
			_, err := score.Rescore(t.Context(), dir, score.RescoreOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "one-score__4Ucooi9") {
				t.Errorf("got error %v, want the file and %q", err, tt.want)
			}
		})
	}
}

// TestRescoreUnfinished takes a stopped job for what it is.
func TestRescoreUnfinished(t *testing.T) {
	t.Parallel()
	dir := jobtest.Copy(t, jobtest.Fixture("mixed-oracle"))
	path := filepath.Join(dir, "result.json")
	data := jobtest.Read(t, path)
	data = strings.Replace(data, `"finished_at": "2026-11-21T04:41:17.953066"`, `"finished_at": null`, 1)
	data = strings.Replace(data, `"n_running_trials": 0`, `"n_running_trials": 2`, 1)
	data = strings.Replace(data, `"reward_stats": {`, `"reward_stats": {"retried": {"0.5": []},`, 1)
	jobtest.Write(t, path, []byte(data))
	r := rescore(t, dir)
	for _, d := range r.Check() {
		t.Error(d)
	}
}

func TestRescoreWithoutResult(t *testing.T) {
	t.Parallel()
	dir := jobtest.Copy(t, jobtest.Fixture("mixed-oracle"))
	for _, name := range []string{"result.json", "config.json"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	r := rescore(t, dir)
	if len(r.Warnings) != 2 {
		t.Errorf("got warnings %q, want two", r.Warnings)
	}
	if r.Result.ID.String() != "16401540-e2ba-4823-bb62-26ec7a1a9bb4" || r.Result.NTotalTrials != 8 {
		t.Errorf("got id %s and %d trials", r.Result.ID, r.Result.NTotalTrials)
	}
	e, _ := r.Result.Stats.Evals.Get("oracle__mixed")
	if got := jobtest.Compact(e.Metrics[0]); got != `{"mean":0.35833333333333334}` {
		t.Errorf("got metric %s", got)
	}
	if len(r.Check()) == 0 {
		t.Error("a missing result is no difference")
	}
}

func TestRescoreOtherMetric(t *testing.T) {
	t.Parallel()
	opts := score.RescoreOptions{Metrics: []score.Metric{{Type: jobdir.MetricMax}, {Type: jobdir.MetricSum}}}
	r, err := score.Rescore(t.Context(), jobtest.Fixture("multi-oracle"), opts)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := r.Result.Stats.Evals.Get("oracle__multi")
	var got []string
	for _, m := range e.Metrics {
		got = append(got, jobtest.Compact(m))
	}
	if want := `{"correctness":1,"speed":0.7} {"correctness":1.3,"speed":0.7}`; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func rescore(t *testing.T, dir string) *score.Rescored {
	t.Helper()
	r, err := score.Rescore(t.Context(), dir, score.RescoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
