package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

// policyTrial is a trial of a job that is scored under a policy.
type policyTrial struct {
	task    string
	rewards value.Value // an object or null
}

// scoredTrials are trials with one reward each.
func scoredTrials(scores value.List, task func(i int) string) []policyTrial {
	trials := make([]policyTrial, len(scores))
	for i, x := range scores {
		rewards := value.NewObject(1)
		rewards.Append("reward", x)
		trials[i] = policyTrial{task(i), rewards}
	}
	return trials
}

// policyJob writes a job whose trials have rewards. What no result of a trial can hold is
// skipped: rewards that are no numbers, and infinities, which are null in a trial's file as
// nan is.
func policyJob(t *testing.T, trials []policyTrial) string {
	t.Helper()
	if len(trials) == 0 {
		t.Skip("a job without trials has no score")
	}
	job := t.TempDir()
	template := jobtest.Read(t, filepath.Join(jobtest.Glob(t, filepath.Join(jobtest.Fixture("mixed-nop"), "tenth__*"))[0], "result.json"))
	for i, trial := range trials {
		name := fmt.Sprintf("trial-%04d", i)
		result := jobtest.Decode(t, []byte(template))
		result.Set("task_name", value.Str(trial.task))
		result.Set("trial_name", value.Str(name))
		jobtest.Member[*value.Object](t, result, "config").Set("trial_name", value.Str(name))
		jobtest.Member[*value.Object](t, result, "verifier_result").Set("rewards", fileRewards(t, trial.rewards))
		dir := filepath.Join(job, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		jobtest.Write(t, filepath.Join(dir, "result.json"), value.AppendDumps(nil, result, value.DumpsOptions{}))
	}
	return job
}

// fileRewards are rewards as a trial's file has them.
func fileRewards(t *testing.T, rewards value.Value) value.Value {
	t.Helper()
	obj, ok := rewards.(*value.Object)
	if !ok {
		return rewards
	}
	out := value.NewObject(obj.Len())
	for name, v := range obj.All() {
		switch x := v.(type) {
		case value.Float:
			if math.IsInf(float64(x), 0) {
				t.Skip("a trial's file has no infinity")
			}
			if math.IsNaN(float64(x)) {
				v = value.Null{}
			}
		case value.Int:
		default:
			t.Skip("a trial's rewards are numbers alone")
		}
		out.Append(name, v)
	}
	return out
}

// policyFlag is a flag with a vector's value; null is not given.
func policyFlag(name string, v value.Value) []string {
	switch v := v.(type) {
	case value.Str:
		return []string{"--" + name + "=" + string(v)}
	case value.Int:
		return []string{"--" + name + "=" + v.String()}
	case value.Float:
		return []string{"--" + name + "=" + strconv.FormatFloat(float64(v), 'g', -1, 64)}
	}
	return nil
}

// policyScored is what score prints of a job under a policy.
func policyScored(t *testing.T, job string, flags []string) *value.Object {
	t.Helper()
	code, out, errs := command(t, "", append([]string{"score", "--json", job}, flags...)...)
	if code != 0 {
		t.Fatalf("exit code %d; it says %s%s", code, out, errs)
	}
	return vectors.Object(jobtest.Decode(t, []byte(out)), "policy")
}

// refusedPolicy has the command refuse flags with the message of a vector.
func refusedPolicy(t *testing.T, c *value.Object, flags []string) {
	t.Helper()
	want := vectors.Str(vectors.Object(c, "error"), "message")
	if strings.Contains(want, "empty trial-score list") {
		t.Skip("no task of a job is without trials")
	}
	for _, name := range []string{"score", "outcome"} {
		code, out, errs := command(t, "", append([]string{name, jobtest.Fixture("mixed-nop")}, flags...)...)
		if code != 2 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, want %q; it says %s%s", name, code, want, out, errs)
		}
	}
}

// samePrinted compares a printed number, which is null for what JSON cannot say, with that
// of a vector, bit for bit.
func samePrinted(t *testing.T, what string, got, want value.Value) {
	t.Helper()
	w, err := value.ToFloat(want.(value.Number))
	if err != nil {
		t.Fatal(err)
	}
	if math.IsNaN(float64(w)) || math.IsInf(float64(w), 0) {
		if !value.IsNull(got) {
			t.Errorf("%s: got %s, want null", what, value.Repr(got))
		}
		return
	}
	g, ok := got.(value.Float)
	if !ok || math.Float64bits(float64(g)) != math.Float64bits(float64(w)) {
		t.Errorf("%s: got %s, want %s", what, value.Repr(got), value.Repr(want))
	}
}

// TestVarianceThroughScore writes the trials of the vectors as a job and has the command
// aggregate them.
func TestVarianceThroughScore(t *testing.T) {
	t.Parallel()
	checked := 0
	vectors.Each(t, "outcome/variance.jsonl", func(t *testing.T, c *value.Object) {
		flags := append(policyFlag("aggregate", vectors.Get(c, "mode")), "--keep=off")
		if c.Has("error") {
			refusedPolicy(t, c, flags)
			checked++
			return
		}
		var trials []policyTrial
		want := value.List{}
		switch vectors.Str(c, "op") {
		case "aggregate":
			trials = scoredTrials(vectors.List(c, "scores"), func(int) string { return "t" })
			want = append(want, value.List{value.Str("t"), vectors.Get(c, "value")})
		case "trial_score":
			trials = []policyTrial{{"t", vectors.Get(c, "rewards")}}
			want = append(want, value.List{value.Str("t"), vectors.Get(c, "value")})
		case "per_task":
			for _, v := range vectors.List(c, "outcomes") {
				pair := v.(value.List)
				trials = append(trials, policyTrial{string(pair[0].(value.Str)), pair[1]})
			}
			want = vectors.List(c, "scores")
		}
		tasks := vectors.List(policyScored(t, policyJob(t, trials), flags), "tasks")
		if len(tasks) != len(want) {
			t.Fatalf("got %s, want %s", value.Repr(tasks), value.Repr(want))
		}
		for i, v := range want {
			pair, got := v.(value.List), tasks[i].(*value.Object)
			if name := string(pair[0].(value.Str)); vectors.Str(got, "task") != name {
				t.Errorf("task %d is %s, want %s", i, value.Repr(got), name)
			}
			samePrinted(t, vectors.Str(got, "task"), vectors.Get(got, "score"), pair[1])
		}
		checked++
	})
	if !t.Failed() && checked < 75 {
		t.Errorf("checked %d: too few", checked)
	}
}

// TestKeepPoliciesThroughScore gives each score of the vectors a task, and has the command
// score the job.
func TestKeepPoliciesThroughScore(t *testing.T) {
	t.Parallel()
	checked := 0
	vectors.Each(t, "outcome/keep_policy.jsonl", func(t *testing.T, c *value.Object) {
		// The best of one attempt is the attempt, also where it is minus 0.
		flags := append(policyFlag("keep", vectors.Get(c, "policy")), "--aggregate=best-of-k")
		// A flag of another policy is refused.
		switch strings.ToLower(strings.TrimSpace(vectors.Str(c, "policy"))) {
		case "drop-lowest-n":
			flags = append(flags, policyFlag("drop-lowest", vectors.Get(c, "drop_lowest_n"))...)
		case "threshold-band":
			flags = append(flags, policyFlag("threshold", vectors.Get(c, "threshold"))...)
		}
		if c.Has("error") {
			refusedPolicy(t, c, flags)
			checked++
			return
		}
		got := policyScored(t, policyJob(t, scoredTrials(vectors.List(c, "scores"), func(i int) string { return fmt.Sprintf("task-%04d", i) })), flags)
		samePrinted(t, "score", vectors.Get(got, "score"), vectors.Get(c, "score"))
		var kept value.List
		for _, v := range vectors.List(got, "tasks") {
			if task := v.(*value.Object); vectors.Bool(task, "kept") {
				kept = append(kept, vectors.Get(task, "score"))
			}
		}
		want := vectors.List(c, "kept")
		if len(kept) != len(want) || vectors.Int(got, "n_kept_tasks") != len(want) {
			t.Fatalf("kept %s, want %s", value.Repr(kept), value.Repr(want))
		}
		for i := range want {
			samePrinted(t, fmt.Sprintf("kept score %d", i), kept[i], want[i])
		}
		checked++
	})
	if !t.Failed() && checked < 150 {
		t.Errorf("checked %d: too few", checked)
	}
}
