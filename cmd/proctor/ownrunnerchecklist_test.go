package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/value"
)

// checklistRows are rows of the acceptance checklist of the outcome mapping (section 18),
// each with what must hold.
type checklistRows []struct {
	row   string
	check func(t *testing.T)
}

func (rows checklistRows) run(t *testing.T) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.row, func(t *testing.T) {
			t.Parallel()
			r.check(t)
		})
	}
}

// TestOwnrunnerChecklist has the commands show the rows of the checklist that commands
// can show. The numbers of reason codes (26; 3, 14, 3 and 6) are held by TestCodes of
// package outcome, the refusal of a task without attempts by its vectors. The rows on the
// runner are held by the vectors of package ownrunner, the guarantees of package
// evaluation, and the script ownrunner-run.
func TestOwnrunnerChecklist(t *testing.T) {
	t.Parallel()
	for group, rows := range map[string]checklistRows{
		"Mapping": mappingRows(), "Host": hostRows(), "ReasonCodes": reasonRows(), "Attempt": attemptRows(), "Aggregation": aggregationRows(),
	} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			rows.run(t)
		})
	}
}

// mapped are the result lines, without their prefix, that the producer's command makes of
// result files.
type mapped map[string]string

func (m mapped) check(t *testing.T) {
	t.Helper()
	for text, want := range m {
		file := filepath.Join(t.TempDir(), "result.json")
		if text != "" {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, out, errs := command(t, "", "outcome", file)
		if code != 0 || out != outcome.Prefix+want+"\n" {
			t.Errorf("%s: exit code %d with %s%s, want %s", text, code, out, errs, want)
		}
	}
}

// summary is the payload of a result line.
func summary(status, score string, resolved, total int) string {
	return summaryWith("null", status, score, resolved, total)
}

func summaryWith(reason, status, score string, resolved, total int) string {
	return `{"reason_code": ` + reason + `, "resolved": ` + strconv.Itoa(resolved) + `, "score": ` + score +
		`, "status": "` + status + `", "total": ` + strconv.Itoa(total) + `}`
}

// harborResult is a job's result file with the counts as JSON, and a group for each metric.
func harborResult(total, completed, errored string, metrics ...string) string {
	var groups []string
	for i, m := range metrics {
		groups = append(groups, `"group-`+strconv.Itoa(i)+`": {"metrics": [`+m+`]}`)
	}
	return `{"n_total_trials": ` + total + `, "stats": {"n_completed_trials": ` + completed + `, "n_errored_trials": ` + errored +
		`, "evals": {` + strings.Join(groups, ", ") + `}}}`
}

func meanOf(x string) string { return `{"mean": ` + x + `}` }

func mappingRows() checklistRows {
	malformed := summaryWith(`"harbor_result_malformed"`, "failed", "0.0", 0, 0)
	return checklistRows{
		{"absent file", mapped{"": summaryWith(`"harbor_result_missing"`, "failed", "0.0", 0, 0)}.check},
		{"unusable files and the empty object", mapped{
			"{not json": malformed, "null": malformed, "[]": malformed, "{}": summary("completed", "0.0", 0, 0),
		}.check},
		{"resolved is rounded half to even", mapped{
			harborResult("3", "3", "0", meanOf("0.6666666666666666")): summary("completed", "0.6666666666666666", 2, 3),
			harborResult("1", "1", "0", meanOf("0.5")):                summary("completed", "0.5", 0, 1),
			harborResult("3", "3", "0", meanOf("0.5")):                summary("completed", "0.5", 2, 3),
			harborResult("1", "1", "0", meanOf("2.5")):                summary("completed", "2.5", 2, 1),
		}.check},
		{"an errored trial fails the job", mapped{
			harborResult("2", "2", "1", meanOf("1.0")): summary("failed", "1.0", 2, 2),
		}.check},
		{"total falls back, resolved does not", mapped{
			harborResult("0", "2", "1", meanOf("1.0")): summary("failed", "1.0", 0, 3),
		}.check},
		{"a metric without mean gives a sample per key", mapped{
			harborResult("2", "2", "0", `{"correctness": 0.5, "speed": 0.75}`): summary("completed", "0.625", 1, 2),
		}.check},
		{"the sum is compensated", mapped{
			harborResult("3", "3", "0", meanOf("0.1"), meanOf("0.2"), meanOf("0.3")): summary("completed", "0.19999999999999998", 1, 3),
		}.check},
		{"means that are numbers and that are none", mapped{
			harborResult("2", "2", "0", meanOf(`"0.5"`)): summary("completed", "0.5", 1, 2),
			harborResult("2", "2", "0", meanOf("null")):  malformed,
			harborResult("2", "2", "0", meanOf(`"abc"`)): malformed,
			harborResult("2", "2", "0", meanOf("NaN")):   malformed,
			harborResult("2", "2", "0", meanOf("1e400")): malformed,
		}.check},
		{"counts are coerced", mapped{
			harborResult("2.9", "2", "0"):   summary("completed", "0.0", 0, 2),
			harborResult(`"3"`, "3", "0"):   summary("completed", "0.0", 0, 3),
			harborResult(`"3.5"`, "3", "0"): malformed,
		}.check},
	}
}

// captured is what a consumer captured of a runner, and what the judgement says of it:
// status, score and reason.
type captured struct {
	stdout, want string
	flags        []string // an exit code of 0 without any
}

type capturedList []captured

func (list capturedList) check(t *testing.T) {
	t.Helper()
	for _, c := range list {
		if got := hostOf(t, c); hostText(got) != c.want {
			t.Errorf("%q with %v: got %s, want %s", c.stdout, c.flags, hostText(got), c.want)
		}
	}
}

func hostOf(t *testing.T, c captured) *value.Object {
	t.Helper()
	if c.flags == nil {
		c.flags = []string{"--exit-code", "0"}
	}
	return vectors.Object(judged(t, c.stdout, append(c.flags, "--attempt", "1")...), "host")
}

func hostText(host *value.Object) string {
	return vectors.Str(host, "status") + " " + value.Repr(vectors.Get(host, "score")) + " " + value.Repr(vectors.Get(host, "reason_code"))
}

// claim is the result line of a payload.
func claim(payload string) string { return outcome.Prefix + payload + "\n" }

func scoreLine(score string) string { return claim(summary("completed", score, 1, 1)) }

// claimed is the output of a runner that failed with a reason.
func claimed(reason string) string { return claim(`{"reason_code": "` + reason + `"}`) }

func hostRows() checklistRows {
	found, missing := capturedList{}, capturedList{}
	for _, before := range []string{"\r", "\v", "\f", "\u0085", "\u2028"} {
		found = append(found, captured{stdout: "x" + before + scoreLine("0.5"), want: "completed 0.5 None"})
	}
	for _, before := range []string{" ", "x\x1f"} {
		missing = append(missing, captured{stdout: before + scoreLine("0.5"), want: "failed 0.0 'harbor_result_missing'"})
	}
	return checklistRows{
		{"the last line decides", capturedList{
			{stdout: scoreLine("0.25") + scoreLine("0.5"), want: "completed 0.5 None"},
			{stdout: scoreLine("0.25") + outcome.Prefix + "{bad", want: "failed 0.0 'harbor_result_malformed'"},
		}.check},
		{"where a line begins", append(found, missing...).check},
		{"how the process ended beats its line", checkProcessEnd},
		{"the reason of a process that failed is normalised", capturedList{
			{claimed("AgentTimeoutError"), "failed 0.0 'harbor_agent_timeout_error'", []string{"--exit-code", "1"}},
		}.check},
		{"what a payload must have", capturedList{
			{stdout: claim("{}"), want: "failed 0.0 'harbor_result_partial'"},
			{stdout: claim(summary("weird", "0.5", 0, 1)), want: "failed 0.0 'harbor_result_invalid'"},
			{stdout: claim(summary("completed", "true", 0, 1)), want: "failed 0.0 'harbor_result_invalid'"},
			{stdout: claim(summary("failed", "0.5", 0, 1)), want: "failed 0.0 'harbor_result_invalid'"},
			{stdout: claim(summary("completed", "-0.0", 0, 1)), want: "completed -0.0 None"},
		}.check},
		{"standard error gets the reason", checkAnnotated},
	}
}

func checkProcessEnd(t *testing.T) {
	t.Helper()
	capturedList{
		{scoreLine("0.5"), "timed_out 0.0 'timed_out'", []string{"--timed-out", "--exit-code", "124"}},
	}.check(t)
	host := hostOf(t, captured{stdout: scoreLine("0.5"), flags: []string{"--exit-code", "2"}})
	if got := hostText(host); got != "failed 0.0 'harbor_nonzero_exit'" {
		t.Errorf("got %s", got)
	}
	if kept := value.Repr(vectors.Get(vectors.Object(host, "payload"), "score")); kept != "0.5" {
		t.Errorf("the payload's score is %s", kept)
	}
}

// checkAnnotated has a reason that is its own slug: any other would be normalised first.
func checkAnnotated(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stderr")
	if err := os.WriteFile(file, []byte("err\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host := hostOf(t, captured{stdout: claimed("x"), flags: []string{"--exit-code", "1", "--stderr", file}})
	if got := vectors.Str(host, "stderr"); got != "err\nagent_challenge_reason_code=x" {
		t.Errorf("got %q", got)
	}
}

// reasoned is what becomes of a reason that a process claims, and up to which attempt it is
// made once more; 0 for any code.
type reasoned struct {
	reason, code string
	retried      int
}

type reasonedList []reasoned

func (list reasonedList) check(t *testing.T) {
	t.Helper()
	for _, c := range list {
		for attempt := 1; attempt <= outcome.MaxAttempts; attempt++ {
			got := judged(t, claimed(c.reason), "--exit-code", "1", "--attempt", strconv.Itoa(attempt))
			if code := vectors.Str(vectors.Object(got, "outcome"), "reason_code"); code != c.code {
				t.Errorf("%q: got %q, want %q", c.reason, code, c.code)
			}
			if retry := vectors.Bool(got, "retry"); retry != (attempt <= c.retried) {
				t.Errorf("%q at attempt %d: retry is %t", c.reason, attempt, retry)
			}
		}
	}
}

func reasonRows() checklistRows {
	return checklistRows{
		{"cancelled and broker are tried twice again", reasonedList{
			{"CancelledError", "harbor_cancelled_error", 2}, {"broker connection failed", "harbor_broker_connection_failed", 2},
		}.check},
		{"the text of a missing reward is no code", reasonedList{{"No reward file found at a or b", "no_reward_file_found_at_a_or_b", 2}}.check},
		{"names become codes or slugs", reasonedList{
			{"AgentSetupTimeoutError", "agentsetuptimeouterror", 2}, {"connection-refused", "connection_refused", 2},
			{"REWARD-MISSING", "harbor_reward_missing", 0},
		}.check},
		{"agent timeout comes before broker", reasonedList{{"agent timeout error while broker connection", "harbor_agent_timeout_error", 0}}.check},
		{"unknown text is retryable", reasonedList{{"nobody knows", "nobody_knows", 2}}.check},
	}
}

func attemptRows() checklistRows {
	return checklistRows{
		{"Harbor's trial files are not understood", checkHarborTrial},
		{"completed trials, as many as planned or not", checkCompletedTrials},
		{"trials beat an exit code", func(t *testing.T) {
			got := judged(t, "", "--exit-code", "7", "--attempt", "1", completedJob(t, 1, 0.5))
			if text := attemptText(got); text != "completed 0.75 'harbor_nonzero_exit' False" {
				t.Errorf("got %s", text)
			}
		}},
		{"no trials and no reason", func(t *testing.T) {
			got := judged(t, claim(summary("failed", "0.0", 0, 1)), "--exit-code", "0", "--attempt", "1", t.TempDir())
			if text := attemptText(got); text != "failed 0.0 'harbor_trial_failed' False" {
				t.Errorf("got %s", text)
			}
			if text := trialTexts(got); text != "stdout-summary failed 0.0" {
				t.Errorf("the trials are %s", text)
			}
		}},
	}
}

func checkHarborTrial(t *testing.T) {
	t.Helper()
	job := policyJob(t, scoredTrials(value.List{value.Float(1)}, func(int) string { return "t" }))
	if text := trialTexts(judged(t, scoreLine("1.0"), "--exit-code", "0", "--attempt", "1", job)); text != "trial-0000 failed 0.0" {
		t.Errorf("the trials are %s", text)
	}
}

func checkCompletedTrials(t *testing.T) {
	t.Helper()
	job := completedJob(t, 1, 0.5)
	if text := attemptText(judged(t, scoreLine("0.5"), "--exit-code", "0", "--attempt", "1", job)); text != "completed 0.75 None False" {
		t.Errorf("got %s", text)
	}
	if text := attemptText(judged(t, scoreLine("0.5"), "--exit-code", "0", "--attempt", "1", "--expect-trials", "3", job)); text != "failed 0.0 'harbor_result_partial' False" {
		t.Errorf("with 3 expected: %s", text)
	}
}

// completedJob has records of trials that completed.
func completedJob(t *testing.T, scores ...float64) string {
	t.Helper()
	job := t.TempDir()
	for i, x := range scores {
		record := value.NewObject(2)
		record.Append("status", value.Str("completed"))
		record.Append("score", value.Float(x))
		putRecord(t, job, strconv.Itoa(i), record)
	}
	return job
}

// attemptText is a judgement's attempt and reason, and whether it is tried again.
func attemptText(judgement *value.Object) string {
	attempt := vectors.Object(judgement, "attempt")
	return vectors.Str(attempt, "status") + " " + value.Repr(vectors.Get(attempt, "score")) + " " +
		value.Repr(vectors.Get(vectors.Object(judgement, "outcome"), "reason_code")) + " " + value.Repr(vectors.Get(judgement, "retry"))
}

func trialTexts(judgement *value.Object) string {
	var list []string
	for _, v := range vectors.List(judgement, "trials") {
		trial := v.(*value.Object)
		list = append(list, vectors.Str(trial, "trial_name")+" "+vectors.Str(trial, "status")+" "+value.Repr(vectors.Get(trial, "score")))
	}
	return strings.Join(list, "\n")
}

// scoredAs is what the command makes of scores under a policy: the score, and those of the
// tasks that were kept.
type scoredAs struct {
	scores []float64
	flags  string
	want   string
}

type scoredList []scoredAs

func (list scoredList) check(t *testing.T, task func(i int) string) {
	t.Helper()
	for _, c := range list {
		var scores value.List
		for _, x := range c.scores {
			scores = append(scores, value.Float(x))
		}
		got := policyScored(t, policyJob(t, scoredTrials(scores, task)), strings.Fields(c.flags))
		text := value.Repr(vectors.Get(got, "score")) + " of"
		for _, v := range vectors.List(got, "tasks") {
			if kept := v.(*value.Object); vectors.Bool(kept, "kept") {
				text += " " + value.Repr(vectors.Get(kept, "score"))
			}
		}
		if text != c.want {
			t.Errorf("%v with %s: got %s, want %s", c.scores, c.flags, text, c.want)
		}
	}
}

func aggregationRows() checklistRows {
	oneTask := func(int) string { return "t" }
	return checklistRows{
		{"mean, best-of-k and unknown modes", func(t *testing.T) {
			scoredList{
				{[]float64{0.1, 0.2, 0.3}, "--aggregate=mean", "0.19999999999999998 of 0.19999999999999998"},
				{[]float64{0.4, 0.6, 0.5}, "--aggregate=best-of-k", "0.6 of 0.6"},
			}.check(t, oneTask)
			refusedFlags(t, "unknown per-task aggregation mode 'median'", "--aggregate=median")
		}},
		{"drop-lowest-n", func(t *testing.T) {
			four := []float64{0.2, 0.9, 0.1, 0.8}
			scoredList{
				{four, "--keep=drop-lowest-n --drop-lowest=2", "0.8500000000000001 of 0.9 0.8"},
				{four, "--keep=drop-lowest-n --drop-lowest=4", "0.9 of 0.9"},
				{four, "--keep=drop-lowest-n --drop-lowest=99", "0.9 of 0.9"},
				{four, "--keep=drop-lowest-n --drop-lowest=0", "0.5 of 0.2 0.9 0.1 0.8"},
				{four, "--keep=off", "0.5 of 0.2 0.9 0.1 0.8"},
			}.check(t, strconv.Itoa)
		}},
		{"threshold-band, and parameters that are refused", func(t *testing.T) {
			scoredList{
				{[]float64{1, 0.4, 0.5, 0}, "--keep=threshold-band --threshold=0.5", "0.75 of 1.0 0.5"},
				{[]float64{0.1, 0.4}, "--keep=threshold-band --threshold=0.5", "0.0 of"},
			}.check(t, strconv.Itoa)
			refusedFlags(t, "threshold-band requires a threshold in [0, 1], got nan", "--keep=threshold-band", "--threshold=NaN")
			refusedFlags(t, "drop-lowest-n requires N >= 0, got -1", "--keep=drop-lowest-n", "--drop-lowest=-1")
		}},
	}
}

// refusedFlags has the command refuse a policy, whatever the job: it has no trials.
func refusedFlags(t *testing.T, want string, flags ...string) {
	t.Helper()
	code, out, errs := command(t, "", append([]string{"score", t.TempDir()}, flags...)...)
	if code != 2 || out != "" || !strings.Contains(errs, want) {
		t.Errorf("exit code %d, want %q; it says %s%s", code, want, out, errs)
	}
}
