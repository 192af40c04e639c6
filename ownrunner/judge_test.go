package ownrunner_test

import (
	"strings"
	"testing"

	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/ownrunner"
	"github.com/proctor-run/proctor/value"
)

func record(name string, status outcome.TrialStatus, score float64) outcome.TrialRecord {
	return outcome.TrialRecord{Task: "t", Name: name, Status: status, Score: &score}
}

// What is decided is held by the vectors, through the command; here is what is said of it.
func TestJudgeSaysWhy(t *testing.T) {
	t.Parallel()
	const good = outcome.Prefix + `{"status": "completed", "score": 1.0}`
	three := 3
	for _, tt := range []struct {
		name     string
		evidence ownrunner.Evidence
		status   outcome.AttemptStatus
		why      string
	}{
		{"as planned", ownrunner.Evidence{
			Run: outcome.Run{Stdout: good}, Attempt: 1, Trials: []outcome.TrialRecord{record("a", outcome.TrialCompleted, 1)},
		}, outcome.AttemptCompleted, "The trial completed."},
		{"the line alone", ownrunner.Evidence{Run: outcome.Run{Stdout: good}, Attempt: 1},
			outcome.AttemptCompleted, "There is no record of a trial, so the result line stands for one."},
		{"nothing", ownrunner.Evidence{Attempt: 1}, outcome.AttemptFailed,
			"There is no record of a trial, and no result line that stands for one. The process counts as failed (harbor_result_missing). The reason harbor_result_missing is final."},
		{"too few", ownrunner.Evidence{
			Run: outcome.Run{Stdout: good}, Attempt: 1, Expected: &three, Trials: []outcome.TrialRecord{record("a", outcome.TrialCompleted, 1)},
		}, outcome.AttemptFailed, "The trial completed. 3 were planned. The reason harbor_result_partial is final."},
		{"no class", ownrunner.Evidence{
			Run:     outcome.Run{Stdout: outcome.Prefix + `{"reason_code": "disk gone"}`, ExitCode: 1},
			Attempt: 2, Trials: []outcome.TrialRecord{record("a", outcome.TrialUnsolved, 0)},
		}, outcome.AttemptRetry, "0 of 1 trials completed; a is the first that did not, and one is enough to fail the attempt. " +
			"The process counts as failed (disk_gone). The reason disk_gone has no class, and such reasons are tried again: attempt 2 of 3 is followed by another one."},
		{"no directory", ownrunner.Evidence{Run: outcome.Run{Stdout: good}, NoJobDir: true, Attempt: 3},
			outcome.AttemptFailed, "The job directory is not there. Attempt 3 of 3 was the last."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j, err := tt.evidence.Judge()
			if err != nil {
				t.Fatal(err)
			}
			if j.Attempt.Status != tt.status || j.Retry() != (tt.status == outcome.AttemptRetry) {
				t.Errorf("got %+v, want %s", j.Attempt, tt.status)
			}
			if j.Why != tt.why {
				t.Errorf("it says %q, want %q", j.Why, tt.why)
			}
			stored := string(value.AppendDumps(nil, j.Object(), value.DumpsOptions{}))
			if !strings.Contains(stored, `"attempt": {"number": `) || !strings.Contains(stored, `"status": "`+string(tt.status)+`"`) {
				t.Errorf("stored is %s", stored)
			}
		})
	}
	if _, err := (ownrunner.Evidence{}).Judge(); err == nil {
		t.Error("attempt 0 is judged")
	}
}
