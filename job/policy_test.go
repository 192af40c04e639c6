package job_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/score"
)

// under prepares a job for which a policy is fixed.
func (h *harness) under(p *outcome.Policy) (*job.Prepared, error) {
	return job.Prepare(h.cfg, job.PrepareOptions{Now: time.Now(), Lookup: noVariables, Policy: p, AcceptHarmless: true})
}

// TestPolicyIsFixed: the policy that a job was begun with is kept, also by a job that came
// as JSON, and no other takes its place.
func TestPolicyIsFixed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a", "b"), fake.Config{Rules: []fake.Rule{grant("1")}})
	drop := &outcome.Policy{Aggregation: outcome.MeanOfAttempts, Keep: outcome.Keep{Policy: outcome.DropLowest, Drop: 1}}
	p, err := h.under(drop)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.runner.Run(t.Context(), carried(t, p)); err != nil {
		t.Fatal(err)
	}
	if stored, err := score.FixedPolicy(h.dir()); err != nil || stored == nil || *stored != *drop {
		t.Fatalf("stored is %+v, %v", stored, err)
	}
	for _, asked := range []*outcome.Policy{nil, drop} {
		if p, err := h.under(asked); err != nil || p.Policy == nil || *p.Policy != *drop {
			t.Errorf("asked for %v: got %+v, %v", asked, p, err)
		}
	}
	resumed, err := job.PrepareResume(h.dir(), job.ResumeOptions{PrepareOptions: job.PrepareOptions{Now: time.Now(), Lookup: noVariables}})
	if err != nil || resumed.Policy == nil || *resumed.Policy != *drop {
		t.Errorf("resumed: got %+v, %v", resumed, err)
	}
	_, err = h.under(&outcome.Policy{})
	if changed, ok := errors.AsType[*jobdir.ChangedError](err); !ok || changed.Harmless() || len(changed.Changes) != 1 {
		t.Errorf("another policy: got %v", err)
	}
	if err := os.WriteFile(filepath.Join(h.dir(), score.PolicyFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.under(nil); err == nil || !strings.Contains(err.Error(), score.PolicyFile) {
		t.Errorf("a damaged policy: got %v", err)
	}
}

// TestPolicyIsNotFixedLater: for a job that was begun it is too late.
func TestPolicyIsNotFixedLater(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a"), fake.Config{Rules: []fake.Rule{grant("1")}})
	h.run(t)
	if _, err := os.Lstat(filepath.Join(h.dir(), score.PolicyFile)); err == nil {
		t.Error("there is a policy that nobody asked for")
	}
	if _, err := h.under(&outcome.Policy{}); err == nil || !strings.Contains(err.Error(), "begun without a policy") {
		t.Errorf("got %v", err)
	}
	never := newHarness(t, writeDataset(t, "a"), fake.Config{})
	if _, err := never.under(&outcome.Policy{Keep: outcome.Keep{Policy: outcome.KeepBest}}); err == nil {
		t.Error("a policy without a spelling is fixed")
	}
}
