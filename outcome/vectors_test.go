package outcome_test

import (
	"errors"
	"math"
	"testing"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/value"
)

func float(t *testing.T, v value.Value) float64 {
	t.Helper()
	x, ok := v.(value.Number)
	if !ok {
		t.Fatalf("%s is not a number", value.Repr(v))
	}
	f, err := value.ToFloat(x)
	if err != nil {
		t.Fatal(err)
	}
	return float64(f)
}

func floats(t *testing.T, l value.List) []float64 {
	t.Helper()
	out := make([]float64, len(l))
	for i, v := range l {
		out[i] = float(t, v)
	}
	return out
}

// equal compares values by their text in Python, which tells kinds and zeros
// apart but not nans.
func equal(t *testing.T, what string, got, want value.Value) {
	t.Helper()
	if g, w := value.Repr(got), value.Repr(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

func equalFloat(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// raised checks an error's name and text; an empty text is not compared.
func raised(t *testing.T, err error, exception, message string) {
	t.Helper()
	var typed interface{ ErrorType() string }
	if !errors.As(err, &typed) {
		t.Fatalf("got error %v, want %s", err, exception)
	}
	if typed.ErrorType() != exception {
		t.Errorf("got %s, want %s", typed.ErrorType(), exception)
	}
	if message != "" && err.Error() != message {
		t.Errorf("got message %q, want %q", err, message)
	}
}

func TestNormalizerVectors(t *testing.T) {
	t.Parallel()
	vectors.Each(t, "outcome/normalizer.jsonl", func(t *testing.T, c *value.Object) {
		got := outcome.NormalizeReason(vectors.Str(c, "in"))
		if want := outcome.Code(vectors.Str(c, "code")); got != want {
			t.Errorf("NormalizeReason(%q) = %q, want %q", vectors.Str(c, "in"), got, want)
		}
		if class := classOf(got); class != vectors.Str(c, "class") {
			t.Errorf("class of %q is %s, want %s", got, class, vectors.Str(c, "class"))
		}
		if got.Known() != vectors.Bool(c, "known") {
			t.Errorf("known is %t", got.Known())
		}
	})
}

func classOf(c outcome.Code) string {
	switch {
	case c == "":
		return "none"
	case c.Retryable():
		return "retryable"
	case c.Final():
		return "final"
	}
	return "unclassified"
}

func TestReasonCodeVectors(t *testing.T) {
	t.Parallel()
	vectors.Each(t, "outcome/reason_codes.jsonl", func(t *testing.T, c *value.Object) {
		switch op := vectors.Str(c, "op"); op {
		case "describe":
			describeCode(t, c)
		case "classify":
			code, retry := outcome.Classify(vectors.Str(c, "reason"), vectors.Int(c, "attempt"), vectors.Int(c, "max_attempts"))
			if string(code) != vectors.Str(c, "code") || retry != vectors.Bool(c, "retryable") || retry == vectors.Bool(c, "final") {
				t.Errorf("got %q, retry %t", code, retry)
			}
		default:
			t.Fatalf("no op %q", op)
		}
	})
}

func describeCode(t *testing.T, c *value.Object) {
	code := outcome.Code(vectors.Str(c, "code"))
	for _, flag := range []struct {
		name string
		got  bool
	}{
		{"known", code.Known()}, {"harbor", code.Harbor()}, {"retryable", code.Retryable()},
		{"final", code.Final()}, {"infra", code.Infrastructure()}, {"sentinel", code.Sentinel()},
	} {
		if flag.got != vectors.Bool(c, flag.name) {
			t.Errorf("%s of %q is %t", flag.name, code, flag.got)
		}
	}
	if got := outcome.Remap(code); string(got) != vectors.Str(c, "remap") {
		t.Errorf("Remap(%q) = %q", code, got)
	}
}

func TestOutcomeMapVectors(t *testing.T) {
	t.Parallel()
	vectors.Each(t, "outcome/outcome_map.jsonl", func(t *testing.T, c *value.Object) {
		got := outcome.Missing()
		if text, ok := vectors.Get(c, "result_json").(value.Str); ok {
			got = outcome.Of([]byte(text))
		}
		equal(t, "summary", got.Object(), vectors.Get(c, "summary"))
		line, err := got.Line()
		if err != nil || line != vectors.Str(c, "line") {
			t.Errorf("line: got %s, %v\nwant %s", line, err, vectors.Str(c, "line"))
		}
		if strict := vectors.Object(c, "strict"); strict != nil {
			checkStrict(t, vectors.Str(c, "result_json"), strict, vectors.Object(c, "lenient_summary"))
		}
	})
}

// checkStrict checks what the validating emitter does with a document.
func checkStrict(t *testing.T, text string, want, lenient *value.Object) {
	t.Helper()
	v, err := value.DecodeText(text)
	exception := vectors.Str(want, "raises")
	if exception == "json" {
		if err == nil {
			t.Errorf("the text is JSON")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	o, err := outcome.OfValue(v)
	if err == nil && lenient != nil {
		equal(t, "lenient summary", o.Object(), lenient)
	}
	if err == nil {
		_, err = outcome.Emit(o.Object())
	}
	switch {
	case exception != "":
		raised(t, err, exception, "")
	case err != nil:
		t.Errorf("strict: %v", err)
	default:
		equal(t, "strict result", o.Object(), vectors.Get(want, "result"))
	}
}

func TestResultLineVectors(t *testing.T) {
	t.Parallel()
	vectors.Each(t, "outcome/result_line.jsonl", func(t *testing.T, c *value.Object) {
		switch op := vectors.Str(c, "op"); op {
		case "":
			checkLine(t, c, vectors.Get(c, "payload"))
		case "build":
			checkLine(t, c, outcome.Coerce(vectors.Object(c, "args")))
		case "diagnostics":
			checkDiagnostics(t, c)
		default:
			t.Fatalf("no op %q", op)
		}
	})
}

func checkLine(t *testing.T, c *value.Object, payload value.Value) {
	t.Helper()
	line, err := outcome.Emit(payload)
	if want := vectors.Object(c, "error"); want != nil {
		raised(t, err, vectors.Str(want, "type"), vectors.Str(want, "message"))
		return
	}
	if err != nil || line != vectors.Str(c, "line") {
		t.Errorf("got %s, %v\nwant %s", line, err, vectors.Str(c, "line"))
	}
}

func checkDiagnostics(t *testing.T, c *value.Object) {
	t.Helper()
	var trials []outcome.Diagnostic
	for _, v := range vectors.List(c, "outcomes") {
		o := v.(*value.Object)
		d := outcome.Diagnostic{
			TaskName: vectors.Str(o, "task_name"), TrialName: vectors.Str(o, "trial_name"), Status: vectors.Str(o, "status"),
			Errored: vectors.Bool(o, "errored"), Reason: outcome.Code(vectors.Str(o, "reason_code")),
		}
		if text, ok := vectors.Get(o, "error_text").(value.Str); ok {
			s := string(text)
			d.ErrorText = &s
		}
		trials = append(trials, d)
	}
	got, err := outcome.Diagnostics(trials, vectors.Int(c, "limit"), vectors.Int(c, "max_error_chars"))
	if want := vectors.Object(c, "error"); want != nil {
		raised(t, err, vectors.Str(want, "type"), vectors.Str(want, "message"))
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	entries, lines := value.List{}, value.List{}
	for _, d := range got {
		entries = append(entries, d.Object())
		if line := d.StderrLine(); line != "" {
			lines = append(lines, value.Str(line))
		}
	}
	equal(t, "entries", entries, vectors.Get(c, "entries"))
	equal(t, "stderr", lines, vectors.Get(c, "stderr_lines"))
}

func TestNormalizeVectors(t *testing.T) {
	t.Parallel()
	vectors.Each(t, "outcome/result_normalize.jsonl", func(t *testing.T, c *value.Object) {
		run := outcome.Run{Stdout: vectors.Str(c, "stdout"), ExitCode: vectors.Int(c, "returncode"), TimedOut: vectors.Bool(c, "timed_out")}
		got, err := run.Normalize()
		want := vectors.Object(c, "expect")
		if want.Has("raises") {
			if err == nil || got.Status == outcome.Completed || got.Reason != outcome.ResultMalformed {
				t.Errorf("got %+v, error %v", got, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Status) != vectors.Str(want, "status") || string(got.Reason) != vectors.Str(want, "reason_code") {
			t.Errorf("got %s, reason %q, want %s", got.Status, got.Reason, value.Repr(want))
		}
		equalFloat(t, "score", got.Score, float(t, vectors.Get(want, "score")))
		equal(t, "payload", got.Payload, vectors.Get(want, "payload"))
		if stderr, ok := vectors.Get(want, "stderr").(value.Str); ok {
			if s := outcome.AnnotateStderr(vectors.Str(c, "stderr"), got.Reason); s != string(stderr) {
				t.Errorf("stderr: got %q, want %q", s, stderr)
			}
		}
	})
}

func TestVarianceVectors(t *testing.T) {
	t.Parallel()
	vectors.Each(t, "outcome/variance.jsonl", func(t *testing.T, c *value.Object) {
		switch op := vectors.Str(c, "op"); op {
		case "aggregate":
			mode, err := modeOf(c)
			var got float64
			if err == nil {
				got, err = mode.Of(floats(t, vectors.List(c, "scores")))
			}
			if want := vectors.Object(c, "error"); want != nil {
				raised(t, err, vectors.Str(want, "type"), vectors.Str(want, "message"))
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			equalFloat(t, "value", got, float(t, vectors.Get(c, "value")))
		case "trial_score":
			got, err := outcome.TrialScore(vectors.Object(c, "rewards"))
			if err != nil {
				t.Fatal(err)
			}
			equalFloat(t, "value", got, float(t, vectors.Get(c, "value")))
		case "per_task":
			checkPerTask(t, c)
		default:
			t.Fatalf("no op %q", op)
		}
	})
}

// modeOf reads a mode; null is the default.
func modeOf(c *value.Object) (outcome.Aggregation, error) {
	text, ok := vectors.Get(c, "mode").(value.Str)
	if !ok {
		return "", nil
	}
	return outcome.ParseAggregation(string(text))
}

func checkPerTask(t *testing.T, c *value.Object) {
	t.Helper()
	var trials []outcome.TaskScore
	for _, v := range vectors.List(c, "outcomes") {
		pair := v.(value.List)
		rewards, _ := pair[1].(*value.Object)
		score, err := outcome.TrialScore(rewards)
		if err != nil {
			t.Fatal(err)
		}
		trials = append(trials, outcome.TaskScore{Task: string(pair[0].(value.Str)), Score: score})
	}
	groups := outcome.GroupByTask(trials)
	grouped := value.List{}
	for _, g := range groups {
		scores := value.List{}
		for _, x := range g.Scores {
			scores = append(scores, value.Float(x))
		}
		grouped = append(grouped, value.List{value.Str(g.Task), scores})
	}
	equal(t, "grouped", grouped, vectors.Get(c, "grouped"))
	mode, err := modeOf(c)
	var scores []outcome.TaskScore
	if err == nil {
		scores, err = mode.PerTask(groups)
	}
	if want := vectors.Object(c, "error"); want != nil {
		raised(t, err, vectors.Str(want, "type"), vectors.Str(want, "message"))
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	got := value.List{}
	for _, s := range scores {
		got = append(got, value.List{value.Str(s.Task), value.Float(s.Score)})
	}
	equal(t, "scores", got, vectors.Get(c, "scores"))
}

func TestKeepPolicyVectors(t *testing.T) {
	t.Parallel()
	vectors.Each(t, "outcome/keep_policy.jsonl", func(t *testing.T, c *value.Object) {
		k := outcome.Keep{Drop: vectors.Int(c, "drop_lowest_n"), Threshold: float(t, vectors.Get(c, "threshold"))}
		var err error
		if text, ok := vectors.Get(c, "policy").(value.Str); ok {
			k.Policy, err = outcome.ParseKeepPolicy(string(text))
		}
		var got outcome.JobScore
		if err == nil {
			got, err = k.Of(floats(t, vectors.List(c, "scores")))
		}
		if want := vectors.Object(c, "error"); want != nil {
			raised(t, err, vectors.Str(want, "type"), vectors.Str(want, "message"))
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		kept := floats(t, vectors.List(c, "kept"))
		if len(kept) != len(got.Kept) {
			t.Fatalf("kept: got %v, want %v", got.Kept, kept)
		}
		for i := range kept {
			equalFloat(t, "kept", got.Kept[i], kept[i])
		}
		equalFloat(t, "score", got.Score, float(t, vectors.Get(c, "score")))
	})
}
