package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/value"
)

// command runs a command of the program, with input.
func command(t *testing.T, input string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(t.Context(), Env{
		Args: append([]string{"proctor"}, args...), Stdin: strings.NewReader(input), Stdout: &out, Stderr: &errs, Now: time.Now,
	})
	return code, out.String(), errs.String()
}

// judged runs ownrunner judge and returns what it prints.
func judged(t *testing.T, stdout string, args ...string) *value.Object {
	t.Helper()
	code, out, errs := command(t, stdout, append([]string{"ownrunner", "judge", "--json", "--stdout", "-"}, args...)...)
	v, err := value.Decode([]byte(out))
	if code != 0 || err != nil {
		t.Fatalf("exit code %d, %v; it says %s%s", code, err, out, errs)
	}
	return v.(*value.Object)
}

// TestJudgeNormalizes feeds the captured outputs of the vectors to the command.
func TestJudgeNormalizes(t *testing.T) {
	t.Parallel()
	vectors.Each(t, "outcome/result_normalize.jsonl", func(t *testing.T, c *value.Object) {
		args := []string{"--attempt", "1", "--exit-code", strconv.Itoa(vectors.Int(c, "returncode"))}
		if vectors.Bool(c, "timed_out") {
			args = append(args, "--timed-out")
		}
		want := vectors.Object(c, "expect")
		annotated, hasStderr := vectors.Get(want, "stderr").(value.Str)
		if hasStderr {
			file := filepath.Join(t.TempDir(), "stderr")
			if err := os.WriteFile(file, []byte(vectors.Str(c, "stderr")), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--stderr", file)
		}
		host := vectors.Object(judged(t, vectors.Str(c, "stdout"), args...), "host")
		if want.Has("raises") {
			if vectors.Str(host, "status") == string(outcome.Completed) || vectors.Str(host, "reason_code") != string(outcome.ResultMalformed) {
				t.Errorf("got %s", value.Repr(host))
			}
			return
		}
		for _, member := range []string{"status", "score", "reason_code", "payload"} {
			if got, want := value.Repr(vectors.Get(host, member)), value.Repr(vectors.Get(want, member)); got != want {
				t.Errorf("%s: got %s, want %s", member, got, want)
			}
		}
		if hasStderr && vectors.Str(host, "stderr") != string(annotated) {
			t.Errorf("stderr: got %q, want %q", vectors.Str(host, "stderr"), annotated)
		}
	})
}

// TestJudgeFinalizes writes the trials of the vectors as records and the process's end as
// output. What no process can give (a timeout for another reason) is left out.
func TestJudgeFinalizes(t *testing.T) {
	t.Parallel()
	judgedOf := map[string]int{}
	vectors.Each(t, "outcome/attempt.jsonl", func(t *testing.T, c *value.Object) {
		op := vectors.Str(c, "op")
		switch op {
		case "trial":
			checkRecord(t, c)
		case "finalize":
			stdout, flags, possible := processOf(c)
			if !possible {
				t.Skip("no process ends so")
			}
			checkAttempt(t, c, stdout, flags)
		}
		judgedOf[op]++
	})
	if !t.Failed() && (judgedOf["trial"] < 30 || judgedOf["finalize"] < 25) {
		t.Errorf("judged %v: too few", judgedOf)
	}
}

// putRecord writes a record of the contract's own form.
func putRecord(t *testing.T, job, name string, record value.Value) {
	t.Helper()
	dir := filepath.Join(job, "trials", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if record == nil {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "result.json"), value.AppendDumps(nil, record, value.DumpsOptions{}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func checkRecord(t *testing.T, c *value.Object) {
	t.Helper()
	job := t.TempDir()
	putRecord(t, job, "a", vectors.Get(c, "result"))
	trial := vectors.List(judged(t, "", "--exit-code", "1", "--attempt", "1", job), "trials")[0].(*value.Object)
	if got := vectors.Str(trial, "status"); got != vectors.Str(c, "status") {
		t.Errorf("status: got %s, want %s", got, vectors.Str(c, "status"))
	}
	sameScore(t, vectors.Get(trial, "score"), vectors.Get(c, "score"))
}

func sameScore(t *testing.T, got, want value.Value) {
	t.Helper()
	of := func(v value.Value) float64 {
		x, ok := v.(value.Number)
		if !ok {
			return 0 // a record without a score has none to be read
		}
		f, err := value.ToFloat(x)
		if err != nil {
			t.Fatal(err)
		}
		return float64(f)
	}
	if g, w := of(got), of(want); math.Float64bits(g) != math.Float64bits(w) && !(math.IsNaN(g) && math.IsNaN(w)) {
		t.Errorf("score: got %s, want %s", value.Repr(got), value.Repr(want))
	}
}

// processOf is a process that ends as a vector says.
func processOf(c *value.Object) (stdout string, flags []string, possible bool) {
	status, reason := vectors.Str(c, "normalized_status"), vectors.Str(c, "reason_code")
	score, _ := value.ToFloat(vectors.Get(c, "normalized_score").(value.Number))
	if status == string(outcome.TimedOut) {
		return "", []string{"--timed-out"}, reason == string(outcome.TimedOut)
	}
	line := value.NewObject(5)
	line.Append("status", value.Str(status))
	line.Append("score", value.Float(score))
	line.Append("reason_code", vectors.Get(c, "reason_code"))
	possible = status == string(outcome.Completed) || status == string(outcome.Failed) && score == 0
	return outcome.Prefix + string(value.AppendDumps(nil, line, value.DumpsOptions{})) + "\n", []string{"--exit-code", "0"}, possible
}

func checkAttempt(t *testing.T, c *value.Object, stdout string, flags []string) {
	t.Helper()
	job := t.TempDir()
	for i, v := range vectors.List(c, "trials") {
		trial := v.(value.List)
		record := value.NewObject(4)
		record.Append("trial_name", trial[0])
		record.Append("status", trial[1])
		record.Append("reason_code", trial[3])
		if !value.IsNull(trial[2]) {
			record.Append("score", trial[2])
		}
		putRecord(t, job, fmt.Sprintf("%03d", i), record)
	}
	flags = append(flags, "--attempt", strconv.Itoa(vectors.Int(c, "task_retry_number")), "--task", "<task>")
	if c.Has("expected_trial_count") {
		flags = append(flags, "--expect-trials", strconv.Itoa(vectors.Int(c, "expected_trial_count")))
	}
	if mode := vectors.Str(c, "per_task_aggregation"); mode != "" {
		flags = append(flags, "--aggregate", mode)
	}
	want := vectors.Object(c, "expect")
	if want.Has("raises") {
		code, out, errs := command(t, stdout, append([]string{"ownrunner", "judge", "--stdout", "-", job}, flags...)...)
		if code != 2 || out != "" || !strings.Contains(errs, "aggregation mode") {
			t.Errorf("exit code %d; it says %s%s", code, out, errs)
		}
		return
	}
	got := judged(t, stdout, append(flags, job)...)
	attempt, result := vectors.Object(got, "attempt"), vectors.Object(got, "outcome")
	for _, pair := range [][2]string{
		{vectors.Str(attempt, "status"), vectors.Str(want, "attempt_status")},
		{vectors.Str(attempt, "error"), vectors.Str(want, "attempt_error")},
		{strconv.FormatBool(vectors.Bool(attempt, "final")), strconv.FormatBool(vectors.Int(want, "is_final") == 1)},
		{vectors.Str(result, "status"), vectors.Str(want, "outcome_status")},
		{vectors.Str(result, "reason_code"), vectors.Str(want, "outcome_reason_code")},
	} {
		if pair[0] != pair[1] {
			t.Errorf("got %q, want %q in %s", pair[0], pair[1], value.Repr(got))
		}
	}
	sameScore(t, vectors.Get(attempt, "score"), vectors.Get(want, "attempt_score"))
	sameScore(t, vectors.Get(result, "score"), vectors.Get(want, "outcome_score"))
	trials := vectors.List(got, "trials")
	for i, v := range vectors.List(want, "trials") {
		if name := v.(value.List)[0].(value.Str); i >= len(trials) || vectors.Str(trials[i].(*value.Object), "trial_name") != string(name) {
			t.Errorf("trial %d is not %s: %s", i, name, value.Repr(trials))
		}
	}
}

// TestJudgeClassifies has the process claim the reasons of the vectors.
func TestJudgeClassifies(t *testing.T) {
	t.Parallel()
	vectors.Each(t, "outcome/reason_codes.jsonl", func(t *testing.T, c *value.Object) {
		if vectors.Str(c, "op") != "classify" || vectors.Int(c, "max_attempts") != outcome.MaxAttempts || vectors.Int(c, "attempt") < 1 {
			t.Skip("no attempt of the default cap")
		}
		line := value.NewObject(1)
		line.Append("reason_code", vectors.Get(c, "reason"))
		stdout := outcome.Prefix + string(value.AppendDumps(nil, line, value.DumpsOptions{})) + "\n"
		if outcome.NormalizeReason(vectors.Str(c, "reason")) == "" {
			t.Skip("without a reason the exit code is one")
		}
		got := judged(t, stdout, "--exit-code", "1", "--attempt", strconv.Itoa(vectors.Int(c, "attempt")))
		if code := vectors.Str(vectors.Object(got, "outcome"), "reason_code"); code != vectors.Str(c, "code") {
			t.Errorf("got code %q, want %q", code, vectors.Str(c, "code"))
		}
		if retry := vectors.Bool(got, "retry"); retry != vectors.Bool(c, "retryable") {
			t.Errorf("retry is %t", retry)
		}
	})
}

// TestOutcomeCommandMaps feeds the job results of the vectors to the producer's command.
func TestOutcomeCommandMaps(t *testing.T) {
	t.Parallel()
	vectors.Each(t, "outcome/outcome_map.jsonl", func(t *testing.T, c *value.Object) {
		file := filepath.Join(t.TempDir(), "result.json")
		if text, ok := vectors.Get(c, "result_json").(value.Str); ok {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, out, _ := command(t, "", "outcome", file)
		if want := vectors.Str(c, "line"); code != 0 || strings.TrimSuffix(out, "\n") != strings.TrimSuffix(want, "\n") {
			t.Errorf("exit code %d: got %s, want %s", code, out, want)
		}
	})
}
