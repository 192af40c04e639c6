package report_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/report"
)

// TestRunningTrial: a trial without a result runs while the process lives that its job's
// journal names, and is unfinished where the job has ended without it, or has no journal.
func TestRunningTrial(t *testing.T) {
	t.Parallel()
	self, host := thisProcess(t)
	const name = "task__abcdefg"
	started := []journal.Entry{
		{Kind: journal.JobStarted, Schema: journal.Schema, Owner: &self, Host: host},
		{Kind: journal.TrialStarted, Trial: name, Attempt: 1},
	}
	for what, tt := range map[string]struct {
		entries []journal.Entry
		want    report.State
	}{
		"running":          {started, report.Running},
		"another's":        {append(started[:1:1], journal.Entry{Kind: journal.TrialStarted, Trial: "other", Attempt: 1}), report.Unfinished},
		"interrupted":      {append(started[:2:2], journal.Entry{Kind: journal.JobInterrupted}), report.Unfinished},
		"without a record": {nil, report.Unfinished},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			path := "/tasks/task"
			cfg := jobdir.NewTrialConfig(jobdir.TaskConfig{Path: &path})
			cfg.TrialName = name
			if err := os.WriteFile(filepath.Join(dir, "config.json"), cfg.AppendJSON(nil, nil), 0o644); err != nil {
				t.Fatal(err)
			}
			if tt.entries != nil {
				writeJournal(t, filepath.Dir(dir), tt.entries)
			}
			if got := readTrial(t, dir, 0).State; got != tt.want {
				t.Errorf("it is %s, want %s", got, tt.want)
			}
		})
	}
}

func writeJournal(t *testing.T, dir string, entries []journal.Entry) {
	t.Helper()
	w, err := journal.Open(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := w.AppendSync(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// thisProcess is what a journal notes of the process that writes it.
func thisProcess(t *testing.T) (procid.ID, string) {
	t.Helper()
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return self, host
}
