package outcome_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/proctor-run/proctor/internal/pyvalue"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/outcome"
)

// eachCase runs a function for every line of a vector file.
func eachCase(t *testing.T, file string, run func(t *testing.T, c *pyvalue.Object)) {
	t.Helper()
	cases := 0
	for line := range bytes.Lines(vectors.File(t, file)) {
		v, err := pyvalue.Decode(line)
		if err != nil {
			t.Fatalf("reading case %d of %s: %v", cases, file, err)
		}
		cases++
		c := numbers(v).(*pyvalue.Object)
		t.Run(str(c, "id"), func(t *testing.T) { run(t, c) })
	}
	t.Logf("%s: %d cases", file, cases)
}

// numbers replaces {"$float": text} by the float.
func numbers(v pyvalue.Value) pyvalue.Value {
	switch v := v.(type) {
	case pyvalue.List:
		for i, item := range v {
			v[i] = numbers(item)
		}
	case *pyvalue.Object:
		if text, ok := v.Get("$float"); ok {
			f, _ := pyvalue.FloatLiteral(string(text.(pyvalue.Str)))
			return f
		}
		out := pyvalue.NewObject(v.Len())
		for key, item := range v.All() {
			out.Set(key, numbers(item))
		}
		return out
	}
	return v
}

func get(o *pyvalue.Object, key string) pyvalue.Value {
	v, _ := o.Get(key)
	return v
}

func str(o *pyvalue.Object, key string) string {
	s, _ := get(o, key).(pyvalue.Str)
	return string(s)
}

func object(o *pyvalue.Object, key string) *pyvalue.Object {
	v, _ := get(o, key).(*pyvalue.Object)
	return v
}

func list(o *pyvalue.Object, key string) pyvalue.List {
	l, _ := get(o, key).(pyvalue.List)
	return l
}

func boolean(o *pyvalue.Object, key string) bool {
	b, _ := get(o, key).(pyvalue.Bool)
	return bool(b)
}

func integer(o *pyvalue.Object, key string) int {
	n, _ := get(o, key).(pyvalue.Int)
	i, _ := n.Int64()
	return int(i)
}

func float(t *testing.T, v pyvalue.Value) float64 {
	t.Helper()
	x, ok := v.(pyvalue.Number)
	if !ok {
		t.Fatalf("%s is no number", pyvalue.Repr(v))
	}
	f, err := pyvalue.ToFloat(x)
	if err != nil {
		t.Fatal(err)
	}
	return float64(f)
}

func floats(t *testing.T, l pyvalue.List) []float64 {
	t.Helper()
	out := make([]float64, len(l))
	for i, v := range l {
		out[i] = float(t, v)
	}
	return out
}

// equal compares values by their text in Python, which tells kinds and zeros
// apart but not nans.
func equal(t *testing.T, what string, got, want pyvalue.Value) {
	t.Helper()
	if g, w := pyvalue.Repr(got), pyvalue.Repr(want); g != w {
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
	eachCase(t, "outcome/normalizer.jsonl", func(t *testing.T, c *pyvalue.Object) {
		got := outcome.NormalizeReason(str(c, "in"))
		if want := outcome.Code(str(c, "code")); got != want {
			t.Errorf("NormalizeReason(%q) = %q, want %q", str(c, "in"), got, want)
		}
		if class := classOf(got); class != str(c, "class") {
			t.Errorf("class of %q is %s, want %s", got, class, str(c, "class"))
		}
		if got.Known() != boolean(c, "known") {
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
	eachCase(t, "outcome/reason_codes.jsonl", func(t *testing.T, c *pyvalue.Object) {
		switch op := str(c, "op"); op {
		case "describe":
			describeCode(t, c)
		case "classify":
			code, retry := outcome.Classify(str(c, "reason"), integer(c, "attempt"), integer(c, "max_attempts"))
			if string(code) != str(c, "code") || retry != boolean(c, "retryable") || retry == boolean(c, "final") {
				t.Errorf("got %q, retry %t", code, retry)
			}
		default:
			t.Fatalf("no op %q", op)
		}
	})
}

func describeCode(t *testing.T, c *pyvalue.Object) {
	code := outcome.Code(str(c, "code"))
	for _, flag := range []struct {
		name string
		got  bool
	}{
		{"known", code.Known()}, {"harbor", code.Harbor()}, {"retryable", code.Retryable()},
		{"final", code.Final()}, {"infra", code.Infrastructure()}, {"sentinel", code.Sentinel()},
	} {
		if flag.got != boolean(c, flag.name) {
			t.Errorf("%s of %q is %t", flag.name, code, flag.got)
		}
	}
	if got := outcome.Remap(code); string(got) != str(c, "remap") {
		t.Errorf("Remap(%q) = %q", code, got)
	}
}

func TestOutcomeMapVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "outcome/outcome_map.jsonl", func(t *testing.T, c *pyvalue.Object) {
		got := outcome.Missing()
		if text, ok := get(c, "result_json").(pyvalue.Str); ok {
			got = outcome.Of([]byte(text))
		}
		equal(t, "summary", got.Object(), get(c, "summary"))
		line, err := got.Line()
		if err != nil || line != str(c, "line") {
			t.Errorf("line: got %s, %v\nwant %s", line, err, str(c, "line"))
		}
		if strict := object(c, "strict"); strict != nil {
			checkStrict(t, str(c, "result_json"), strict, object(c, "lenient_summary"))
		}
	})
}

// checkStrict checks what the validating emitter does with a document.
func checkStrict(t *testing.T, text string, want, lenient *pyvalue.Object) {
	t.Helper()
	v, err := pyvalue.DecodeText(text)
	exception := str(want, "raises")
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
		equal(t, "strict result", o.Object(), get(want, "result"))
	}
}

func TestResultLineVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "outcome/result_line.jsonl", func(t *testing.T, c *pyvalue.Object) {
		switch op := str(c, "op"); op {
		case "":
			checkLine(t, c, get(c, "payload"))
		case "build":
			checkLine(t, c, outcome.Coerce(object(c, "args")))
		case "diagnostics":
			checkDiagnostics(t, c)
		default:
			t.Fatalf("no op %q", op)
		}
	})
}

func checkLine(t *testing.T, c *pyvalue.Object, payload pyvalue.Value) {
	t.Helper()
	line, err := outcome.Emit(payload)
	if want := object(c, "error"); want != nil {
		raised(t, err, str(want, "type"), str(want, "message"))
		return
	}
	if err != nil || line != str(c, "line") {
		t.Errorf("got %s, %v\nwant %s", line, err, str(c, "line"))
	}
}

func checkDiagnostics(t *testing.T, c *pyvalue.Object) {
	t.Helper()
	var trials []outcome.Diagnostic
	for _, v := range list(c, "outcomes") {
		o := v.(*pyvalue.Object)
		d := outcome.Diagnostic{
			TaskName: str(o, "task_name"), TrialName: str(o, "trial_name"), Status: str(o, "status"),
			Errored: boolean(o, "errored"), Reason: outcome.Code(str(o, "reason_code")),
		}
		if text, ok := get(o, "error_text").(pyvalue.Str); ok {
			s := string(text)
			d.ErrorText = &s
		}
		trials = append(trials, d)
	}
	got, err := outcome.Diagnostics(trials, integer(c, "limit"), integer(c, "max_error_chars"))
	if want := object(c, "error"); want != nil {
		raised(t, err, str(want, "type"), str(want, "message"))
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	entries, lines := pyvalue.List{}, pyvalue.List{}
	for _, d := range got {
		entries = append(entries, d.Object())
		if line := d.StderrLine(); line != "" {
			lines = append(lines, pyvalue.Str(line))
		}
	}
	equal(t, "entries", entries, get(c, "entries"))
	equal(t, "stderr", lines, get(c, "stderr_lines"))
}

func TestNormalizeVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "outcome/result_normalize.jsonl", func(t *testing.T, c *pyvalue.Object) {
		run := outcome.Run{Stdout: str(c, "stdout"), ExitCode: integer(c, "returncode"), TimedOut: boolean(c, "timed_out")}
		got, err := run.Normalize()
		want := object(c, "expect")
		if want.Has("raises") {
			if err == nil || got.Status == outcome.Completed || got.Reason != outcome.ResultMalformed {
				t.Errorf("got %+v, error %v", got, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Status) != str(want, "status") || string(got.Reason) != str(want, "reason_code") {
			t.Errorf("got %s, reason %q, want %s", got.Status, got.Reason, pyvalue.Repr(want))
		}
		equalFloat(t, "score", got.Score, float(t, get(want, "score")))
		equal(t, "payload", got.Payload, get(want, "payload"))
		if stderr, ok := get(want, "stderr").(pyvalue.Str); ok {
			if s := outcome.AnnotateStderr(str(c, "stderr"), got.Reason); s != string(stderr) {
				t.Errorf("stderr: got %q, want %q", s, stderr)
			}
		}
	})
}

func TestVarianceVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "outcome/variance.jsonl", func(t *testing.T, c *pyvalue.Object) {
		switch op := str(c, "op"); op {
		case "aggregate":
			mode, err := modeOf(c)
			var got float64
			if err == nil {
				got, err = mode.Of(floats(t, list(c, "scores")))
			}
			if want := object(c, "error"); want != nil {
				raised(t, err, str(want, "type"), str(want, "message"))
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			equalFloat(t, "value", got, float(t, get(c, "value")))
		case "trial_score":
			got, err := outcome.TrialScore(object(c, "rewards"))
			if err != nil {
				t.Fatal(err)
			}
			equalFloat(t, "value", got, float(t, get(c, "value")))
		case "per_task":
			checkPerTask(t, c)
		default:
			t.Fatalf("no op %q", op)
		}
	})
}

// modeOf reads a mode; null is the default.
func modeOf(c *pyvalue.Object) (outcome.Aggregation, error) {
	text, ok := get(c, "mode").(pyvalue.Str)
	if !ok {
		return "", nil
	}
	return outcome.ParseAggregation(string(text))
}

func checkPerTask(t *testing.T, c *pyvalue.Object) {
	t.Helper()
	var trials []outcome.TaskScore
	for _, v := range list(c, "outcomes") {
		pair := v.(pyvalue.List)
		rewards, _ := pair[1].(*pyvalue.Object)
		score, err := outcome.TrialScore(rewards)
		if err != nil {
			t.Fatal(err)
		}
		trials = append(trials, outcome.TaskScore{Task: string(pair[0].(pyvalue.Str)), Score: score})
	}
	groups := outcome.GroupByTask(trials)
	grouped := pyvalue.List{}
	for _, g := range groups {
		scores := pyvalue.List{}
		for _, x := range g.Scores {
			scores = append(scores, pyvalue.Float(x))
		}
		grouped = append(grouped, pyvalue.List{pyvalue.Str(g.Task), scores})
	}
	equal(t, "grouped", grouped, get(c, "grouped"))
	mode, err := modeOf(c)
	var scores []outcome.TaskScore
	if err == nil {
		scores, err = mode.PerTask(groups)
	}
	if want := object(c, "error"); want != nil {
		raised(t, err, str(want, "type"), str(want, "message"))
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	got := pyvalue.List{}
	for _, s := range scores {
		got = append(got, pyvalue.List{pyvalue.Str(s.Task), pyvalue.Float(s.Score)})
	}
	equal(t, "scores", got, get(c, "scores"))
}

func TestKeepPolicyVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "outcome/keep_policy.jsonl", func(t *testing.T, c *pyvalue.Object) {
		k := outcome.Keep{Drop: integer(c, "drop_lowest_n"), Threshold: float(t, get(c, "threshold"))}
		var err error
		if text, ok := get(c, "policy").(pyvalue.Str); ok {
			k.Policy, err = outcome.ParseKeepPolicy(string(text))
		}
		var got outcome.JobScore
		if err == nil {
			got, err = k.Of(floats(t, list(c, "scores")))
		}
		if want := object(c, "error"); want != nil {
			raised(t, err, str(want, "type"), str(want, "message"))
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		kept := floats(t, list(c, "kept"))
		if len(kept) != len(got.Kept) {
			t.Fatalf("kept: got %v, want %v", got.Kept, kept)
		}
		for i := range kept {
			equalFloat(t, "kept", got.Kept[i], kept[i])
		}
		equalFloat(t, "score", got.Score, float(t, get(c, "score")))
	})
}
