package value_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/value"
)

// trialResult is a trial's result file as Harbor writes it, with the parts that
// make up most of its bytes.
func trialResult(tb testing.TB) value.Value {
	tb.Helper()
	timing := `{"started_at": "2026-01-02T03:04:05.678901Z", "finished_at": "2026-01-02T03:05:06.789012Z"}`
	v, err := value.DecodeText(fmt.Sprintf(`{
		"id": "7b0c1b2e-5f0c-4f59-9d7a-3f5a0c9d1e11", "task_name": "fix-git", "trial_name": "fix-git__aB3dE6g",
		"trial_uri": "file:///srv/jobs/2026-01-02__03-04-05/fix-git__aB3dE6g",
		"task_id": {"git_url": "https://example.org/tasks.git", "git_commit_id": "0123456789abcdef", "path": "tasks/fix-git"},
		"source": "terminal-bench", "task_checksum": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"config": {"task": {"path": "tasks/fix-git", "git_url": null, "overwrite": false}, "timeout_multiplier": 1.0,
			"agent": {"name": "oracle", "import_path": null, "model_name": "vendor/model", "kwargs": {}, "env": {"A": "b"}},
			"environment": {"type": "docker", "force_build": false, "delete": true, "mounts": ["/a:/b", "/c:/d"]}},
		"agent_info": {"name": "oracle", "version": "1.0.0", "model_info": {"name": "model", "provider": "vendor"}},
		"agent_result": {"n_input_tokens": 123456, "n_cache_tokens": 1234, "n_output_tokens": 98765, "cost_usd": 0.123456,
			"rollout_details": null, "metadata": {"n_episodes": 17, "times": [1.25, 2.5, 3.75, 12.0625]}},
		"verifier_result": {"rewards": {"reward": 1.0, "style": 0.25}}, "exception_info": null,
		"started_at": "2026-01-02T03:04:05.678901Z", "finished_at": "2026-01-02T03:05:06.789012Z",
		"environment_setup": %[1]s, "agent_setup": %[1]s, "agent_execution": %[1]s, "verifier": %[1]s, "step_results": null}`, timing))
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// jobResult is a job's result file: mostly names of trials.
func jobResult(tb testing.TB) value.Value {
	tb.Helper()
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf(`"some-task-%04d__aB3dE6g"`, i))
	}
	v, err := value.DecodeText(`{"n_total_trials": 2000, "stats": {"evals": {"oracle__terminal-bench": {"metrics": [{"mean": 0.5}],
		"reward_stats": {"reward": {"1.0": [` + strings.Join(names, ",") + `]}}}}}}`)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func documents(tb testing.TB) map[string]value.Value {
	return map[string]value.Value{"trial": trialResult(tb), "job": jobResult(tb)}
}

func BenchmarkDecode(b *testing.B) {
	for name, v := range documents(b) {
		data := value.AppendPydantic(nil, v, 4)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := value.Decode(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendPydantic(b *testing.B) {
	for name, v := range documents(b) {
		dst := value.AppendPydantic(nil, v, 4)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(dst)))
			b.ReportAllocs()
			for b.Loop() {
				dst = value.AppendPydantic(dst[:0], v, 4)
			}
		})
	}
}

func BenchmarkAppendDumps(b *testing.B) {
	for name, v := range documents(b) {
		dst := value.AppendDumps(nil, v, value.DumpsOptions{})
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(dst)))
			b.ReportAllocs()
			for b.Loop() {
				dst = value.AppendDumps(dst[:0], v, value.DumpsOptions{})
			}
		})
	}
}

// BenchmarkSum has a plain loop over doubles beside it.
func BenchmarkSum(b *testing.B) {
	const n = 100_000
	items := make([]value.Number, n)
	floats := make([]float64, n)
	for i := range items {
		floats[i] = float64(i%10) / 10
		items[i] = value.Float(floats[i])
	}
	b.Run("python", func(b *testing.B) {
		for b.Loop() {
			if _, err := value.Sum(items); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("loop", func(b *testing.B) {
		total := 0.0
		for b.Loop() {
			for _, f := range floats {
				total += f
			}
		}
		if total < 0 {
			b.Fatal("negative")
		}
	})
}
