package score_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// pythonAggregate is the least that aggregating a job directory takes in
// Python: parse every result and sum the rewards.
const pythonAggregate = `
import json, os, sys
root = sys.argv[1]
rewards = {}
stats = {}
for name in sorted(os.listdir(root)):
    path = os.path.join(root, name, "result.json")
    try:
        with open(path) as f:
            r = json.load(f)
    except (FileNotFoundError, NotADirectoryError):
        continue
    model = r["agent_info"]["model_info"]
    key = "__".join([r["agent_info"]["name"]] + ([model["name"]] if model else []) + [r["source"] or "adhoc"])
    v = r["verifier_result"]
    value = next(iter(v["rewards"].values())) if v else 0
    rewards.setdefault(key, []).append(value)
    stats.setdefault(key, {}).setdefault(value, []).append(r["trial_name"])
print({k: sum(v) / len(v) for k, v in rewards.items()})
`

// benchJob writes a job of n trials and returns its directory.
func benchJob(b *testing.B, n int) string {
	b.Helper()
	dir := b.TempDir()
	text := []byte(benchResult(b))
	for i := range n {
		d := filepath.Join(dir, fmt.Sprintf("task-%d__%07d", i%1000, i))
		if err := os.Mkdir(d, 0o777); err != nil {
			b.Fatal(err)
		}
		data := bytes.ReplaceAll(text, []byte("TRIAL"), []byte(filepath.Base(d)))
		data = bytes.ReplaceAll(data, []byte("TASK"), []byte(strconv.Itoa(i%1000)))
		data = bytes.Replace(data, []byte(`"reward": 1.0`), fmt.Appendf(nil, `"reward": %.3f`, float64(i%17)/16), 1)
		if err := os.WriteFile(filepath.Join(d, scan.ResultFile), data, 0o666); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// benchResult is a trial's result as a run with one agent writes it.
func benchResult(b *testing.B) string {
	b.Helper()
	path, model := "tasks/TASK", "anthropic/claude"
	c := jobdir.NewTrialConfig(jobdir.TaskConfig{Path: &path})
	c.Agent.ModelName = &model
	at := jobdir.UTC(time.Date(2026, 6, 9, 8, 0, 0, 123456000, time.UTC))
	phase := &jobdir.Timing{StartedAt: &at, FinishedAt: &at}
	tokens, cost := value.NewInt(123456), 0.123
	r := jobdir.TrialResult{
		ID: uuid.UUID{1}, TaskName: "org/TASK", TrialName: "TRIAL", TrialURI: "file:///jobs/TRIAL", TaskID: c.Task.ID(),
		TaskChecksum: "abababababababababababababababababababababababababababababababab", Config: c,
		AgentInfo:      jobdir.AgentInfo{Name: "claude-code", Version: "2.0", ModelInfo: jobdir.SplitModel(model)},
		AgentResult:    &jobdir.AgentResult{NInputTokens: &tokens, NOutputTokens: &tokens, CostUSD: &cost},
		VerifierResult: &jobdir.VerifierResult{Rewards: &reward.Rewards{}},
		StartedAt:      &at, FinishedAt: &at, EnvironmentSetup: phase, AgentSetup: phase, AgentExecution: phase, Verifier: phase,
	}
	r.VerifierResult.Rewards.Set("reward", value.Float(1))
	return string(r.AppendJSON(nil, nil))
}

// BenchmarkRescore reads and aggregates job directories that are in the page
// cache. It reports the heap that stays afterwards and, with python3, how many
// times longer Python takes for the bare sums.
func BenchmarkRescore(b *testing.B) {
	perTrial := map[int]float64{}
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			if n > 10_000 && testing.Short() {
				b.Skip("writes 100,000 files")
			}
			dir := benchJob(b, n)
			before := heap()
			var r *score.Rescored
			for b.Loop() {
				var err error
				if r, err = score.Rescore(b.Context(), dir, score.RescoreOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			if r.Result.Stats.NCompletedTrials != n {
				b.Fatalf("got %d trials", r.Result.Stats.NCompletedTrials)
			}
			b.ReportMetric((heap()-before)/(1<<20), "MB-kept")
			runtime.KeepAlive(r)
			perOp := b.Elapsed().Seconds() / float64(b.N)
			perTrial[n] = perOp / float64(n)
			b.ReportMetric(perOp, "s/job")
			if t1, ok := perTrial[1_000]; ok && n > 1_000 {
				b.ReportMetric(1+math.Log(perTrial[n]/t1)/math.Log(float64(n)/1_000), "growth-exponent")
			}
			if s := pythonSeconds(b, pythonAggregate, dir); s > 0 {
				b.ReportMetric(s/perOp, "python/go")
			}
		})
	}
}

func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// pythonSeconds times a script, 0 without Python.
func pythonSeconds(b *testing.B, script string, args ...string) float64 {
	b.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		return 0
	}
	start := time.Now()
	if out, err := exec.CommandContext(b.Context(), python, append([]string{"-c", script}, args...)...).CombinedOutput(); err != nil {
		b.Fatalf("running python3: %v\n%s", err, out)
	}
	return time.Since(start).Seconds()
}

// BenchmarkLiveEnd adds results to a job that has many already.
func BenchmarkLiveEnd(b *testing.B) {
	perEvent := map[int]float64{}
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprintf("task-%d__%07d", i%1000, i)
			}
			for b.Loop() {
				live := score.NewLive(score.LiveConfig{Total: n, Metrics: allMetrics()})
				for i, name := range names {
					r := jobdir.Record{TrialName: name, TaskName: "t", AgentName: "a", Rewards: &reward.Rewards{}}
					r.Rewards.Set("reward", value.Float(float64(i%17)/16))
					if err := live.Start(name, jobdir.Time{}); err != nil {
						b.Fatal(err)
					}
					if err := live.End(r, jobdir.Time{}); err != nil {
						b.Fatal(err)
					}
				}
			}
			per := b.Elapsed().Seconds() / float64(b.N) / float64(n)
			perEvent[n] = per
			b.ReportMetric(per*1e9, "ns/trial")
			if t1, ok := perEvent[1_000]; ok && n > 1_000 {
				b.ReportMetric(1+math.Log(per/t1)/math.Log(float64(n)/1_000), "growth-exponent")
			}
		})
	}
}

// BenchmarkLiveRetry restarts trials of a big job that ended a while ago.
func BenchmarkLiveRetry(b *testing.B) {
	const n, ago = 100_000, 100
	live := score.NewLive(score.LiveConfig{Total: n, Metrics: allMetrics()})
	record := func(i int) jobdir.Record {
		r := jobdir.Record{TrialName: strconv.Itoa(i), TaskName: "t", AgentName: "a", Rewards: &reward.Rewards{}}
		r.Rewards.Set("reward", value.Float(float64(i%17)/16))
		return r
	}
	for i := range n {
		if err := live.End(record(i), jobdir.Time{}); err != nil {
			b.Fatal(err)
		}
	}
	for i := n - ago; b.Loop(); i++ {
		if err := live.Start(strconv.Itoa(i), jobdir.Time{}); err != nil {
			b.Fatal(err)
		}
		for _, j := range []int{i, i + ago} {
			if err := live.End(record(j), jobdir.Time{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkResult encodes and decodes the result file of a big job.
func BenchmarkResult(b *testing.B) {
	a := score.NewAggregator(allMetrics())
	for i := range 100_000 {
		r := jobdir.Record{TrialName: fmt.Sprintf("task-%d__%07d", i%1000, i), TaskName: "t", AgentName: "a", Rewards: &reward.Rewards{}}
		r.Rewards.Set("reward", value.Float(float64(i%17)/16))
		a.Add(r)
	}
	stats, err := a.Stats(100_000, 0)
	if err != nil {
		b.Fatal(err)
	}
	r := jobdir.Result{Stats: stats}
	data := r.AppendJSON(nil)
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			data = r.AppendJSON(data[:0])
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := jobdir.ParseResult(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
