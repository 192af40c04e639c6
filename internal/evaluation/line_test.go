package evaluation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/evaluation"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/ownrunner"
	"github.com/proctor-run/proctor/sandbox"
)

func TestFailureLine(t *testing.T) {
	t.Parallel()
	const code, failed = `{"reason_code": "%s", "resolved": 0, "score": 0.0, "status": "failed", "total": 3}`,
		`{"failure_class": "%s", "failure_detail": "%s", "failure_stage": "%s", "reason_code": "terminal_bench_failed", "resolved": 0, "score": 0.0, "status": "failed", "total": 3}`
	for _, c := range []struct {
		name         string
		stage        evaluation.Stage
		err          error
		line, marker string
	}{
		{
			"digest mismatch", evaluation.Preflight, fmt.Errorf("%w: task a", ownrunner.ErrDigestMismatch),
			fmt.Sprintf(failed, "DigestMismatch", "DigestMismatch: task a", "preflight_tasks"),
			"guest_eval_fail stage=preflight_tasks class=DigestMismatch detail=DigestMismatch: task a",
		},
		{
			"unavailable backend", evaluation.Job, fmt.Errorf("docker: %w", sandbox.ErrUnavailable),
			fmt.Sprintf(code, "harbor_broker_connection_failed"), "guest_eval_fail stage=job class=",
		},
		{
			"interrupted", evaluation.Job, evaluation.ErrInterrupted,
			fmt.Sprintf(code, "harbor_cancelled_error"), "guest_eval_fail stage=job class=CancelledError detail=interrupted; ",
		},
		{
			"panic", evaluation.Emit, &exception.PanicError{Where: "the evaluation", Value: "at a loss", Stack: "goroutine 1"},
			fmt.Sprintf(failed, "RuntimeError", "panic in the evaluation: at a loss", "emit"),
			"guest_eval_fail stage=emit class=RuntimeError detail=panic in the evaluation: at a loss",
		},
		{
			"another lock", evaluation.Job, &evaluation.LockError{File: "lock.json", Want: "A", Got: "B"},
			fmt.Sprintf(failed, "OrchestratorLockError", "lock.json says A, and this run is B", "job"), "guest_eval_fail stage=job class=OrchestratorLockError ",
		},
		{
			"of no type, and with a secret, on two lines", evaluation.CLI, errors.New("at\n<hidden>"),
			fmt.Sprintf(failed, "RuntimeError", "at ***", "cli"), "guest_eval_fail stage=cli class=RuntimeError detail=at ***",
		},
		{
			"a stage that there is not", "elsewhere", errors.New("x"),
			fmt.Sprintf(failed, "RuntimeError", "x", "cli"), "guest_eval_fail stage=cli class=RuntimeError detail=x",
		},
	} {
		line, marker := evaluation.Failure{Stage: c.stage, Err: c.err, Tasks: 3}.Line(func(text string) string {
			return strings.ReplaceAll(text, "<hidden>", "***")
		})
		if line != outcome.Prefix+c.line {
			t.Errorf("%s: got  %s\nwant %s", c.name, line, c.line)
		}
		if !strings.HasPrefix(marker, c.marker) || strings.Contains(marker, "\n") {
			t.Errorf("%s: the marker is %q, want %q", c.name, marker, c.marker)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	token, other, another := redact.Mark(ownrunner.TokenVariable), redact.Mark("PLACE"), redact.Mark("A_KEY")
	for text, want := range map[string]string{
		"":                            "",
		"nothing":                     "nothing",
		token:                         "[REDACTED_GATEWAY_TOKEN]",
		"a " + other + " b":           "a [REDACTED_MINER_ENV] b",
		other + token + another:       "[REDACTED_MINER_ENV][REDACTED_GATEWAY_TOKEN][REDACTED_MINER_ENV]",
		other + other:                 "[REDACTED_MINER_ENV][REDACTED_MINER_ENV]",
		"[REDACTED:no mark] " + token: "[REDACTED:no mark] [REDACTED_GATEWAY_TOKEN]",
		"[REDACTED:" + token:          "[REDACTED:[REDACTED_GATEWAY_TOKEN]",
	} {
		if got := evaluation.Placeholders(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
