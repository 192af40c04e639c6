package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// recorded is an error that results record under a name.
type recorded string

func (e recorded) Error() string     { return "reward missing" } // text that would mislead
func (e recorded) ErrorType() string { return string(e) }

// coded is an error that carries its reason.
type coded outcome.Code

func (e coded) Error() string            { return "cancelled error" }
func (e coded) ReasonCode() outcome.Code { return outcome.Code(e) }

func TestReasonOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want outcome.Code
	}{
		{nil, ""},
		{&reward.Error{Kind: reward.NotFound, Message: "No reward file found at a or b"}, outcome.RewardMissing},
		{fmt.Errorf("verifying: %w", &reward.Error{Kind: reward.Empty}), outcome.RewardEmpty},
		{&reward.Error{Kind: reward.Unparsable, Cause: value.ValueError}, outcome.RewardParseError},
		{&reward.Error{Kind: reward.Invalid}, outcome.TrialFailed},
		{&reward.Error{Kind: reward.TooDeep}, outcome.TrialFailed},
		{recorded("AgentTimeoutError"), outcome.AgentTimeout},
		{recorded("VerifierTimeoutError"), outcome.VerifierTimeout},
		{recorded("EnvironmentStartTimeoutError"), outcome.EnvironmentStartTimeout},
		{recorded("CancelledError"), outcome.CancelledError},
		{recorded("AgentSetupTimeoutError"), outcome.TrialFailed},
		{recorded("NonZeroAgentExitCodeError"), outcome.TrialFailed},
		{recorded("SubmissionCodeError"), outcome.SubmissionCodeFailed},
		{recorded("agenttimeouterror"), outcome.TrialFailed},
		{coded(outcome.SubmissionCodeFailed), outcome.SubmissionCodeFailed},
		{fmt.Errorf("building: %w", coded(outcome.GenericFailed)), outcome.GenericFailed},
		{coded("made up"), outcome.TrialFailed},
		{context.Canceled, outcome.TrialFailed},
		{errors.New("reward file is empty"), outcome.TrialFailed}, // text decides nothing
	} {
		if got := outcome.ReasonOf(tt.err); got != tt.want {
			t.Errorf("ReasonOf(%T %v) = %q, want %q", tt.err, tt.err, got, tt.want)
		}
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	codes := outcome.Codes()
	for _, c := range codes {
		if got := outcome.NormalizeReason(string(c)); got != c {
			t.Errorf("%q normalises to %q", c, got)
		}
		for name, is := range map[string]bool{
			"known": c.Known(), "harbor": c.Harbor(), "retryable": c.Retryable(),
			"final": c.Final(), "infrastructure": c.Infrastructure(), "sentinel": c.Sentinel(),
		} {
			if is {
				count[name]++
			}
		}
	}
	for name, want := range map[string]int{"known": 26, "harbor": 17, "retryable": 6, "final": 15, "infrastructure": 3, "sentinel": 6} {
		if count[name] != want {
			t.Errorf("%d codes are %s, want %d", count[name], name, want)
		}
	}
	if slices.Sort(codes); len(slices.Compact(codes)) != 26 {
		t.Errorf("some codes come twice")
	}
}

// TestHarborExceptions pins how names and messages of Harbor's exceptions, and the name
// of a Python agent's, fare as text (outcome mapping, section 6.5).
func TestHarborExceptions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]outcome.Code{
		"RewardFileNotFoundError":                     "rewardfilenotfounderror",
		"RewardFileEmptyError":                        outcome.RewardEmpty,
		"VerifierOutputParseError":                    "verifieroutputparseerror",
		"Failed to parse rewards from x":              outcome.RewardParseError,
		"AgentSetupTimeoutError":                      "agentsetuptimeouterror",
		"No reward file found at /a or /b":            "no_reward_file_found_at_/a_or_/b",
		"SubmissionCodeError":                         outcome.SubmissionCodeFailed,
		"agent timeout error while broker connection": outcome.AgentTimeout,
		"\ud7ff\xed\xa0\x80 REWARD-MISSING":           outcome.RewardMissing,
		"-":                                           "_",
		"Terminal Bench Failed":                       outcome.GenericFailed,
	} {
		if got := outcome.NormalizeReason(text); got != want {
			t.Errorf("NormalizeReason(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestLocateTrials(t *testing.T) {
	t.Parallel()
	file := &fstest.MapFile{Data: []byte(`{"score": 1}`)}
	for _, tt := range []struct {
		name string
		job  fstest.MapFS
		want []string
	}{
		{"own layout", fstest.MapFS{"result.json": file, "trials/b/result.json": file, "trials/a/other": file, "trials/file": file, "x/result.json": file}, []string{"trials/a", "trials/b"}},
		{"anywhere", fstest.MapFS{"result.json": file, "b/result.json": file, "a-x/result.json": file, "a/c/result.json": file, "a/result.json": file}, []string{"a", "a/c", "a-x", "b"}},
		{"none", fstest.MapFS{"result.json": file}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := outcome.LocateTrials(tt.job)
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestReadTrials(t *testing.T) {
	t.Parallel()
	job := fstest.MapFS{
		"trials/1-good/result.json":   {Data: []byte(`{"score": 0.5, "task_id": {"path": "x"}, "trial_name": "one", "reason_code": 7, "stdout_path": "out"}`)},
		"trials/2-absent/other":       {},
		"trials/3-list/result.json":   {Data: []byte(`[]`)},
		"trials/4-text/result.json":   {Data: []byte("{" + strings.Repeat(" ", 2000))},
		"trials/5-latin1/result.json": {Data: []byte("{\"a\": \"\xff\"}")},
		"trials/6-huge/result.json":   {Data: []byte(`{"score": 1` + strings.Repeat("0", 400) + `}`)},
		"trials/7-harbor/result.json": {Data: []byte(`{"verifier_result": {"rewards": {"reward": 1.0}}, "trial_name": "t__abc"}`)},
	}
	got, err := outcome.ReadTrials(job, "task")
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		task, name string
		status     outcome.TrialStatus
		reason     string
	}{
		{"{'path': 'x'}", "one", outcome.TrialUnsolved, ""},
		{"task", "2-absent", outcome.TrialErrored, "harbor_trial_result_missing"},
		{"task", "3-list", outcome.TrialErrored, "harbor_trial_result_malformed"},
		{"task", "4-text", outcome.TrialErrored, "harbor_trial_result_malformed"},
		{"task", "5-latin1", outcome.TrialErrored, "harbor_trial_result_malformed"},
		{"task", "6-huge", outcome.TrialErrored, "harbor_trial_result_malformed"},
		{"task", "t__abc", outcome.TrialUnsolved, ""},
	}
	if len(got) != len(want) {
		t.Fatalf("got %d records", len(got))
	}
	for i, w := range want {
		if r := got[i]; r.Task != w.task || r.Name != w.name || r.Status != w.status || r.Reason != w.reason || (r.Score == nil) != (w.reason != "") {
			t.Errorf("record %d: got %+v, want %+v", i, r, w)
		}
	}
	if *got[0].Score != 0.5 || got[0].Stdout != "out" || *got[6].Score != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestFinalizeAcrossParts(t *testing.T) {
	t.Parallel()
	one, half := 1.0, 0.5
	three := 3
	a := outcome.Attempt{
		Trials: []outcome.TrialRecord{{Name: "a", Status: outcome.TrialCompleted, Score: &one}, {Name: "b", Status: outcome.TrialCompleted, Score: &half}},
		Host:   outcome.Normalized{Status: outcome.Completed, Score: 0.75}, Number: 1,
	}
	f, err := a.Finalize()
	if err != nil || f.Status != outcome.AttemptCompleted || f.Score != 0.75 {
		t.Errorf("got %+v, %v", f, err)
	}
	a.Expected = &three
	f, err = a.Finalize()
	if err != nil || f.Status != outcome.AttemptFailed || !f.Final || f.OutcomeReason != outcome.ResultPartial || f.Score != 0 {
		t.Errorf("with another number of trials: got %+v, %v", f, err)
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	const valid = `{"schema_version": 1, "per_task_aggregation": "best_of_k", "keep_policy": "threshold_band", "drop_lowest_n": 0, "threshold_f64be": "3fe0000000000000"}`
	p, err := outcome.ParsePolicy([]byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Of([]outcome.TaskScores{{Task: "b", Scores: []float64{0, 0.25}}, {Task: "a", Scores: []float64{0.5, 1}}, {Task: "c", Scores: []float64{0.5, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Score != 0.75 || s.PassedTasks != 1 || s.PassedTrials != 1 || s.Total != 3 || s.Tasks[0] != (outcome.TaskScore{Task: "a", Score: 1}) {
		t.Errorf("got %+v", s)
	}
	for _, change := range [][2]string{
		{`"schema_version": 1`, `"schema_version": 2`},
		{`"schema_version": 1`, `"schema_version": true`},
		{`"best_of_k"`, `"best-of-k"`},
		{`"threshold_band"`, `"best_of_k"`},
		{`"drop_lowest_n": 0`, `"drop_lowest_n": 1`},
		{`"drop_lowest_n": 0`, `"drop_lowest_n": 0.0`},
		{`"3fe0000000000000"`, `"3FE0000000000000"`},
		{`"3fe0000000000000"`, `"3fe000000000000"`},
		{`"3fe0000000000000"`, `"7ff8000000000000"`},
		{`"3fe0000000000000"`, `"8000000000000000"`},
		{`"3fe0000000000000"`, `null`},
		{`"threshold_band"`, `"off"`},
		{`"schema_version": 1, `, ``},
		{`"schema_version": 1, `, `"schema_version": 1, "more": 1, `},
		{valid, `[]`},
		{valid, `{`},
	} {
		text := strings.Replace(valid, change[0], change[1], 1)
		if _, err := outcome.ParsePolicy([]byte(text)); err == nil {
			t.Errorf("accepted %s", text)
		}
	}
	for _, tasks := range [][]outcome.TaskScores{
		{{Task: "a", Scores: []float64{1}}, {Task: "b", Scores: []float64{1, 1}}},
		{{Task: "a", Scores: []float64{1}}, {Task: "a", Scores: []float64{1}}},
		{{Task: "a", Scores: []float64{1.5}}},
		{{Task: "a"}},
	} {
		if _, err := p.Of(tasks); err == nil {
			t.Errorf("scored %v", tasks)
		}
	}
}

func TestPolicyText(t *testing.T) {
	t.Parallel()
	const off = `{"drop_lowest_n": 0, "keep_policy": "off", "per_task_aggregation": "mean", "schema_version": 1, "threshold_f64be": null}`
	if text, err := (outcome.Policy{}).Text(); err != nil || text != off {
		t.Errorf("got %s, %v", text, err)
	}
	for _, p := range []outcome.Policy{
		{Keep: outcome.Keep{Policy: outcome.KeepBest}},
		{Keep: outcome.Keep{Policy: outcome.DropLowest, Drop: -1}},
		{Keep: outcome.Keep{Policy: outcome.KeepAll, Drop: 1}},
		{Keep: outcome.Keep{Policy: outcome.KeepAboveBound, Threshold: 2}},
		{Aggregation: "median"},
	} {
		if text, err := p.Text(); err == nil {
			t.Errorf("%+v is written as %s", p, text)
		}
	}
}

func TestWithScore(t *testing.T) {
	t.Parallel()
	x := outcome.Explain([]byte(`{"n_total_trials": 5, "stats": {"n_completed_trials": 5, "n_errored_trials": 1, "evals": {"a": {"metrics": [{"mean": 0.25}]}}}}`))
	for _, tt := range []struct {
		score    float64
		resolved string
	}{{0.5, "2"}, {0.7, "4"}, {0.3, "2"}, {1, "5"}, {0, "0"}} {
		got, err := x.WithScore(tt.score)
		if o := got.Outcome; err != nil || o.Score != tt.score || o.Resolved.String() != tt.resolved || o.Total.String() != "5" || o.Status != outcome.Failed {
			t.Errorf("score %v: got %+v, %v", tt.score, o, err)
		}
	}
	for _, score := range []float64{1.5, -0.25, math.NaN(), math.Inf(1)} {
		if got, err := x.WithScore(score); err == nil {
			t.Errorf("score %v: got %+v", score, got.Outcome)
		}
	}
	if got, err := outcome.Explain([]byte(`[]`)).WithScore(1); err != nil || got.Outcome != outcome.Malformed() {
		t.Errorf("malformed: got %+v, %v", got.Outcome, err)
	}
}

func TestDropLowestPolicy(t *testing.T) {
	t.Parallel()
	p, err := outcome.ParsePolicy([]byte(`{"schema_version": 1, "per_task_aggregation": "mean", "keep_policy": "drop_lowest_n", "drop_lowest_n": 1, "threshold_f64be": null}`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Of([]outcome.TaskScores{{Task: "a", Scores: []float64{0}}, {Task: "b", Scores: []float64{0.5}}})
	if err != nil || s.Score != 0.5 || !slices.Equal(s.Kept, []float64{0.5}) || s.Eligible(2) {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	x := outcome.Explain([]byte(`{"n_total_trials": 0, "stats": {"n_completed_trials": 2, "n_errored_trials": 1, "evals": {
		"a": {"metrics": [{"mean": 0.5, "speed": 7}, {"x": 1, "y": true}]}, "b": {"metrics": []}}}}`))
	want := []outcome.Sample{{Group: "a", Key: "mean", Value: 0.5, Hidden: []string{"speed"}}, {Group: "a", Metric: 1, Key: "x", Value: 1}, {Group: "a", Metric: 1, Key: "y", Value: 1}}
	if fmt.Sprint(x.Samples) != fmt.Sprint(want) || !x.Fallback || x.Product != 0 {
		t.Errorf("got %+v", x)
	}
	if x := outcome.Explain([]byte(`{"stats": {"evals": {"g": {"metrics": [{"mean": null}]}}}}`)); x.Err == nil || x.Outcome != outcome.Malformed() {
		t.Errorf("got %+v", x)
	}
}

// TestKeptNegativeZero: a job's score is the mean of what is kept, so a kept
// minus 0 scores 0 (outcome mapping, section 10).
func TestKeptNegativeZero(t *testing.T) {
	t.Parallel()
	minus0 := math.Copysign(0, -1)
	for _, policy := range []outcome.KeepPolicy{outcome.KeepAll, outcome.KeepBest, outcome.DropLowest, outcome.KeepAboveBound} {
		got, err := outcome.Keep{Policy: policy}.Of([]float64{minus0})
		if err != nil {
			t.Fatal(err)
		}
		if got.Score != 0 || math.Signbit(got.Score) {
			t.Errorf("%s: score %v, want 0", policy, got.Score)
		}
		if len(got.Kept) != 1 || !math.Signbit(got.Kept[0]) {
			t.Errorf("%s: kept %v, want minus 0 itself", policy, got.Kept)
		}
	}
}
