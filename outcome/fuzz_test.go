package outcome_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/value"
)

// FuzzOf checks that every file gives an outcome whose numbers hold together, and
// that the consumer reads back what the line says.
func FuzzOf(f *testing.F) {
	for _, seed := range []string{
		`{"n_total_trials": 3, "stats": {"n_completed_trials": 3, "n_errored_trials": 0, "evals": {"a__b": {"metrics": [{"mean": 0.5}, {"x": "1_0", "y": true}]}}}}`,
		`{"n_total_trials": " 3 ", "stats": {"evals": {"a": {"metrics": {}}, "b": {"metrics": ""}}}}`,
		"{}", "null", `{"stats": null}`, "\ufeff{}", `{"stats": {"evals": {"a": {"metrics": ["mean"]}}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x := outcome.Explain(data)
		o := x.Outcome
		if math.IsNaN(o.Score) || math.IsInf(o.Score, 0) {
			t.Fatalf("score %v", o.Score)
		}
		if (x.Err != nil) != (o.Reason != "") || x.Err != nil && !same(o, outcome.Malformed()) {
			t.Fatalf("outcome %+v, error %v", o, x.Err)
		}
		line, err := o.Line()
		if err != nil {
			return
		}
		payload, problem, err := outcome.FindLine("noise\n" + line + "\nnoise")
		if err != nil || problem != "" {
			t.Fatalf("the line %q is not found: %q, %v", line, problem, err)
		}
		for key, v := range o.Object().All() {
			if got, _ := payload.Get(key); value.Repr(got) != value.Repr(v) {
				t.Fatalf("%s of %q is %s", key, line, value.Repr(got))
			}
		}
	})
}

func same(a, b outcome.Outcome) bool { return value.Repr(a.Object()) == value.Repr(b.Object()) }

// FuzzNormalize checks that captured output, whatever it is, gives no more than
// the rules allow.
func FuzzNormalize(f *testing.F) {
	f.Add("a\u2028"+outcome.Prefix+`{"status": "completed", "score": 1}`, 0, false)
	f.Add(outcome.Prefix+`{"status": "failed", "score": 0, "reason_code": "x-y"}`+"\r\nb", 1, false)
	f.Add(outcome.Prefix+"{", 0, true)
	f.Fuzz(func(t *testing.T, stdout string, exit int, timedOut bool) {
		n, err := outcome.Run{Stdout: stdout, ExitCode: exit, TimedOut: timedOut}.Normalize()
		completed := n.Status == outcome.Completed
		if !(n.Score >= 0 && n.Score <= 1) || n.Score > 0 && !completed || n.Payload == nil {
			t.Fatalf("got %+v", n)
		}
		if completed && (err != nil || exit != 0 || timedOut || !strings.Contains(stdout, outcome.Prefix)) {
			t.Fatalf("completed: %q, exit %d, %t, %v", stdout, exit, timedOut, err)
		}
	})
}

// FuzzNormalizeReason checks that a code stays what it is, and that words decide
// as documented.
func FuzzNormalizeReason(f *testing.F) {
	for _, seed := range []string{"Harbor Reward-Missing", "İΣ", "\x1c", "ΑΣ'", "connection\u00a0refused", "a\xffb\xed\xa0\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		code := outcome.NormalizeReason(text)
		if code.Known() && outcome.NormalizeReason(string(code)) != code {
			t.Fatalf("%q gives %q, which gives another code", text, code)
		}
		if strings.ContainsAny(string(code), " \t\n-ABCXYZ") {
			t.Fatalf("%q gives %q", text, code)
		}
	})
}

// FuzzReadTrial checks that every record is one of three kinds.
func FuzzReadTrial(f *testing.F) {
	for _, seed := range []string{`{"score": 0.5, "status": " PASSED"}`, `{"metrics": {"a": null, "b": 2}}`, "[]", `{"task_id": {"a": 1}, "name": 5}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := outcome.ReadTrial(data, "task", "name")
		unreadable := r.Reason == string(outcome.TrialResultMalformed) && r.Score == nil && r.Error != ""
		if r.Name == "" || r.Task == "" || (r.Score == nil) != unreadable {
			t.Fatalf("got %+v", r)
		}
	})
}

// FuzzParsePolicy checks that what is accepted can be applied, and written again.
func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte(`{"schema_version": 1, "per_task_aggregation": "mean", "keep_policy": "drop_lowest_n", "drop_lowest_n": 99, "threshold_f64be": null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := outcome.ParsePolicy(data)
		if err != nil {
			return
		}
		s, err := p.Of([]outcome.TaskScores{{Task: "a", Scores: []float64{0.5}}, {Task: "b", Scores: []float64{1}}})
		if err != nil || !(s.Score >= 0 && s.Score <= 1) {
			t.Fatalf("%s gives %+v, %v", data, s, err)
		}
		text, err := p.Text()
		if err != nil {
			t.Fatalf("%s cannot be written: %v", data, err)
		}
		if again, err := outcome.ParsePolicy([]byte(text)); err != nil || again != p {
			t.Fatalf("%s is written as %s, which is %+v, %v", data, text, again, err)
		}
	})
}

func TestKeepProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOf(rapid.Float64Range(0, 1)).Draw(t, "scores")
		k := outcome.Keep{
			Policy:    rapid.SampledFrom([]outcome.KeepPolicy{"", outcome.KeepAll, outcome.KeepBest, outcome.DropLowest, outcome.KeepAboveBound}).Draw(t, "policy"),
			Drop:      rapid.IntRange(0, 12).Draw(t, "drop"),
			Threshold: rapid.Float64Range(0, 1).Draw(t, "threshold"),
		}
		s, err := k.Of(scores)
		if err != nil {
			t.Fatal(err)
		}
		all, err := outcome.Keep{}.Of(scores)
		if err != nil {
			t.Fatal(err)
		}
		if s.Total != len(scores) || s.Passed != all.Passed || !isSubsequence(s.Kept, scores) {
			t.Fatalf("got %+v of %v", s, scores)
		}
		if k.Policy == outcome.DropLowest && len(scores) > 0 && len(s.Kept) != max(1, len(scores)-k.Drop) {
			t.Fatalf("dropped to %d of %d", len(s.Kept), len(scores))
		}
		// Leaving out low scores cannot lower a mean by more than rounding.
		if len(s.Kept) > 0 && s.Score < all.Score-1e-12 {
			t.Fatalf("score %v is below that of all, %v", s.Score, all.Score)
		}
	})
}

func isSubsequence(part, whole []float64) bool {
	for _, x := range whole {
		if len(part) > 0 && part[0] == x {
			part = part[1:]
		}
	}
	return len(part) == 0
}

func TestGroupingProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		trials := rapid.SliceOf(rapid.Custom(func(t *rapid.T) outcome.TaskScore {
			return outcome.TaskScore{Task: rapid.StringMatching("[abc]").Draw(t, "task"), Score: rapid.Float64Range(-2, 2).Draw(t, "score")}
		})).Draw(t, "trials")
		groups := outcome.GroupByTask(trials)
		n := 0
		for _, g := range groups {
			n += len(g.Scores)
			mean, err := outcome.MeanOfAttempts.Of(g.Scores)
			if err != nil {
				t.Fatal(err)
			}
			best, err := outcome.BestOfK.Of(g.Scores)
			if err != nil || best < mean-1e-12 {
				t.Fatalf("best %v, mean %v, %v", best, mean, err)
			}
		}
		if n != len(trials) {
			t.Fatalf("%d scores of %d trials", n, len(trials))
		}
	})
}
