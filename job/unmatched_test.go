package job_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestUnmatchedFilters: a job whose filters match nothing is not started. One that was
// started, by whatever runner, goes on with a warning.
func TestUnmatchedFilters(t *testing.T) {
	t.Parallel()
	set := writeDataset(t, "alpha", "beta")
	h := newHarness(t, set, fake.Config{Rules: []fake.Rule{grant("1")}})
	h.cfg.Datasets[0].TaskNames = []string{"a*", "alfa"}
	h.cfg.Datasets[0].ExcludeTaskNames = []string{"beta"}
	_, err := job.Prepare(h.cfg, sourceOptions(t))
	unmatched, ok := errors.AsType[*dataset.UnmatchedError](err)
	if !ok || !slices.Equal(unmatched.Patterns, []string{"alfa"}) || !slices.Equal(unmatched.Near[0], []string{"alpha"}) {
		t.Fatalf("got %v", err)
	}

	h.cfg.Datasets[0].TaskNames = []string{"a*"}
	h.run(t)
	if err := os.RemoveAll(filepath.Join(set, "beta")); err != nil {
		t.Fatal(err)
	}
	warned := func(warnings []string) bool {
		return slices.ContainsFunc(warnings, func(w string) bool { return strings.HasSuffix(w, `matches "beta"`) })
	}
	again, err := job.Prepare(h.cfg, sourceOptions(t))
	if err != nil || !warned(again.Warnings) || len(again.Remaining) != 0 {
		t.Errorf("the same run again: %v", err)
	}
	resumed, err := job.PrepareResume(h.dir(), job.ResumeOptions{PrepareOptions: sourceOptions(t)})
	if err != nil || !warned(resumed.Warnings) {
		t.Errorf("resumed: %v", err)
	}
	h.cfg.JobName = "another"
	if _, err := job.Prepare(h.cfg, sourceOptions(t)); !errors.As(err, &unmatched) {
		t.Errorf("another job: %v", err)
	}
}
