package ownrunner_test

import (
	"strings"
	"testing"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/ownrunner"
	"github.com/proctor-run/proctor/value"
)

// TestParseTrialReadsWhatIsWritten reads the records of the vectors, and writes them again.
func TestParseTrialReadsWhatIsWritten(t *testing.T) {
	t.Parallel()
	read := 0
	vectors.Each(t, "outcome/own_layout.jsonl", func(t *testing.T, c *value.Object) {
		if vectors.Str(c, "op") != "trial_files" {
			t.Skip("no record")
		}
		want := vectors.Str(c, "result_json")
		trial, err := ownrunner.ParseTrial([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		got, err := trial.ResultJSON()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "record", string(got), want)
		read++
	})
	if !t.Failed() && read < 5 {
		t.Errorf("read %d records: too few", read)
	}
}

// TestParseTrialRefuses has records that count as none: their trials run again.
func TestParseTrialRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:       "reading a trial's record: ",
		`{"a`:    "reading a trial's record: ",
		`[]`:     "expected an object, got list",
		`null`:   "expected an object, got NoneType",
		`"x"`:    "expected an object, got str",
		`{} {}`:  "reading a trial's record: ",
		`{}`:     "task_name, trial_name or status is missing",
		"\xef{}": "reading a trial's record: ",
		`{"trial_name": "b", "status": "completed"}`:                                         "is missing",
		`{"task_name": "a", "status": "completed"}`:                                          "is missing",
		`{"task_name": "a", "trial_name": "b"}`:                                              "is missing",
		`{"task_name": "a", "trial_name": "b", "status": null}`:                              "is missing",
		`{"task_name": 1, "trial_name": "b", "status": "completed"}`:                         "is missing",
		`{"task_name": "a", "trial_name": "b", "status": "failed", "rewards": {"r": "1"}}`:   `reward "r": expected a number, got str`,
		`{"task_name": "a", "trial_name": "b", "status": "failed", "rewards": {"r": null}}`:  `reward "r": expected a number, got NoneType`,
		`{"task_name": "a", "trial_name": "b", "status": "failed", "rewards": {"r": {}}}`:    `reward "r": expected a number, got dict`,
		`{"task_name": "a", "trial_name": "b", "status": "failed", "rewards": {"r": [0.5]}}`: `reward "r": expected a number, got list`,
	} {
		if got, err := ownrunner.ParseTrial([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %+v, %v, want an error with %q", text, got, err, want)
		}
	}
}

// TestParseTrialOfOthers reads a record with what it need not have, and without it.
func TestParseTrialOfOthers(t *testing.T) {
	t.Parallel()
	trial, err := ownrunner.ParseTrial([]byte(`{"status": "failed", "task_name": "a", "trial_name": "b", "more": 1}`))
	if err != nil || trial != (ownrunner.Trial{TaskName: "a", TrialName: "b", Status: outcome.Failed}) {
		t.Errorf("got %+v, %v", trial, err)
	}
}

// FuzzParseTrial checks that a record that counts is one that can be written and read
// again, and comes back the same.
func FuzzParseTrial(f *testing.F) {
	f.Add([]byte(`{"task_name": "a", "trial_name": "b", "status": "completed", "errored": false, "rewards": {"reward": 0.5, "n": 3}}`))
	f.Add([]byte(`{"task_name": "\ud800", "trial_name": "b", "status": "failed", "rewards": {}, "model_name": "", "reason_code": "x"}`))
	f.Add([]byte(`{"task_name": "a", "trial_name": "b", "status": "failed", "rewards": {"r": NaN, "s": 1e999}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		trial, err := ownrunner.ParseTrial(data)
		if err != nil {
			return
		}
		if trial.TaskName == "" || trial.TrialName == "" || trial.Status == "" {
			t.Fatalf("%q counts as %+v", data, trial)
		}
		written, err := trial.ResultJSON()
		if err != nil {
			return // a reward beyond the range of doubles
		}
		again, err := ownrunner.ParseTrial(written)
		if err != nil {
			t.Fatalf("%q is written as %q: %v", data, written, err)
		}
		if rewritten, err := again.ResultJSON(); err != nil || string(rewritten) != string(written) {
			t.Fatalf("%q is written as %q, and then as %q, %v", data, written, rewritten, err)
		}
	})
}

func TestFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failure ownrunner.Failure
		reason  outcome.Code
		text    string
	}{
		{ownrunner.Failure{}, "", ""},
		{ownrunner.Failure{Unstarted: true}, "", ""},
		{ownrunner.Failure{Type: exception.AgentTimeoutError, Message: "late"}, outcome.AgentTimeout, "late"},
		{ownrunner.Failure{Type: exception.AgentSetupTimeoutError, Message: "late"}, outcome.AgentTimeout, "late"},
		{ownrunner.Failure{Type: exception.SubmissionCodeError, Message: "no such module"}, outcome.SubmissionCodeFailed, "no such module"},
		{ownrunner.Failure{Type: exception.VerifierTimeoutError, Message: "late"}, outcome.VerifierTimeout, "verifier failed: harbor_verifier_timeout_error"},
		{ownrunner.Failure{Type: exception.RewardFileNotFoundError, Message: "none"}, outcome.RewardMissing, "verifier failed: harbor_reward_missing"},
		{ownrunner.Failure{Type: exception.RewardFileEmptyError, Message: "none"}, outcome.RewardEmpty, "verifier failed: harbor_reward_empty"},
		{ownrunner.Failure{Type: exception.VerifierOutputParseError, Message: "bad"}, outcome.RewardParseError, "verifier failed: harbor_reward_parse_error"},
		{ownrunner.Failure{Type: exception.EnvironmentStartTimeoutError, Message: "late", Unstarted: true}, outcome.EnvironmentStartTimeout, "late"},
		{ownrunner.Failure{Type: exception.CancelledError}, outcome.CancelledError, "trial crashed: CancelledError: "},
		{ownrunner.Failure{Type: exception.CancelledError, Unstarted: true}, outcome.CancelledError, "trial crashed: CancelledError: "},
		{ownrunner.Failure{Type: "RuntimeError", Message: "boom"}, outcome.TrialFailed, "trial crashed: RuntimeError: boom"},
		{ownrunner.Failure{Type: "RuntimeError", Message: "1 GPUs: unsupported", Unstarted: true}, outcome.GenericFailed, "trial crashed: RuntimeError: 1 GPUs: unsupported"},
		// Only where no sandbox was ready can it be the engine that refused.
		{ownrunner.Failure{Type: "RuntimeError", Message: "connection refused", Unstarted: true}, outcome.BrokerConnectionFailed, "trial crashed: RuntimeError: connection refused"},
		{ownrunner.Failure{Type: "RuntimeError", Message: "connection refused"}, outcome.TrialFailed, "trial crashed: RuntimeError: connection refused"},
	} {
		if reason, text := c.failure.Reason(), c.failure.Text(); reason != c.reason || text != c.text {
			t.Errorf("%+v: got %q and %q, want %q and %q", c.failure, reason, text, c.reason, c.text)
		}
	}
}
