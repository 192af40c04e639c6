package job_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
)

func TestRunKeepsJournal(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a"), fake.Config{Rules: []fake.Rule{
		fake.On("/tests/test.sh", fake.Each(fake.Exit(0), fake.Write("/logs/verifier/reward.txt", "1"))),
	}})
	h.cfg.Retry.MaxRetries, h.cfg.Retry.ExcludeExceptions = 1, nil
	h.runner.Trials.Owner = procid.ID{BootID: "boot", PID: 7, StartTicks: 9}
	h.runner.Host = "here"
	out := h.run(t)
	once := []string{"trial_started", "sandbox_created", "agent_started", "sandbox_removed", "trial_finished"}
	want := slices.Concat([]string{"job_started", "inputs_written"}, once, []string{"set_aside"}, once, []string{"job_finished"})
	if got := kinds(t, h.dir()); !slices.Equal(got, want) {
		t.Errorf("journal %q, want %q", got, want)
	}
	j, err := journal.Load(h.dir())
	if err != nil {
		t.Fatal(err)
	}
	first := j.Entries[0]
	if first.Schema != journal.Schema || first.Owner == nil || first.Owner.PID != 7 || first.Host != "here" || first.Job != out.Result.ID.String() || first.Planned != 1 {
		t.Errorf("first entry %+v", first)
	}
	config, err := os.ReadFile(filepath.Join(h.dir(), scan.ConfigFile))
	if err != nil || *first.ConfigDigest != jobdir.DigestOf(config) {
		t.Errorf("digest of the configuration %v, error %v", first.ConfigDigest, err)
	}
	if stored, _, err := jobdir.ParseConfig(first.Config, jobdir.JSON, time.Time{}); err != nil || string(stored.AppendJSON(nil, noVariables)) != string(config) {
		t.Errorf("the configuration in the journal differs (%v): %s", err, first.Config)
	}
	s := journal.NewState(j)
	name := trialOf(t, out, "a")
	result, err := os.ReadFile(filepath.Join(h.dir(), name, scan.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Results()[name]; got != jobdir.DigestOf(result) {
		t.Errorf("digest of the trial's result %v", got)
	}
	notes, err := os.ReadFile(filepath.Join(h.dir(), name, jobdir.NotesFile))
	if noted := s.Finish(name).NotesDigest; err != nil || noted == nil || *noted != jobdir.DigestOf(notes) {
		t.Errorf("digest of the notes %v, error %v", noted, err)
	}
	lock, err := os.ReadFile(filepath.Join(h.dir(), scan.LockFile))
	if noted := s.Runs[0].Inputs.LockDigest; err != nil || noted == nil || *noted != jobdir.DigestOf(lock) {
		t.Errorf("digest of the lock %v, error %v", noted, err)
	}
	if len(s.Trials) != 1 || len(s.Trials[0].Attempts) != 2 || s.Trials[0].Attempts[0].SetAside != "RewardFileNotFoundError" || len(s.Outside()) != 0 || s.Running() != nil {
		t.Errorf("trials %+v, outside %v, running %v", s.Trials, s.Outside(), s.Running())
	}
}

// TestResumeNotesWhatItKeeps: of a run that was killed between a trial's result and the
// entry of it, the next one notes what it keeps.
func TestResumeNotesWhatItKeeps(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a"), fake.Config{Rules: []fake.Rule{grant("1")}})
	name := trialOf(t, h.run(t), "a")
	path := filepath.Join(h.dir(), journal.File)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := bytes.Cut(data, []byte(`{"prev":"`+chainBefore(t, data, journal.TrialFinished)))
	if !ok {
		t.Fatalf("no end of the trial in\n%s", data)
	}
	if err := os.WriteFile(path, before, 0o644); err != nil {
		t.Fatal(err)
	}
	h.resume(t, h.dir(), job.ResumeOptions{})
	s, err := journal.LoadState(h.dir())
	if err != nil {
		t.Fatal(err)
	}
	result, err := os.ReadFile(filepath.Join(h.dir(), name, scan.ResultFile))
	end := s.Finish(name)
	if err != nil || end == nil || end.Kind != journal.TrialKept || *end.ResultDigest != jobdir.DigestOf(result) || end.NotesDigest == nil || !end.Rewarded {
		t.Errorf("the trial's end is %+v, error %v", end, err)
	}
	if s.ByName[name].Found() || len(s.ByName[name].Attempts) != 1 || len(s.Chain.Broken) > 0 {
		t.Errorf("the trial is %+v, the chain %+v", s.ByName[name], s.Chain)
	}
}

// chainBefore is the digest that the first line of a kind has of the line before.
func chainBefore(t *testing.T, data []byte, kind journal.Kind) string {
	t.Helper()
	j, err := journal.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range j.Entries {
		if e.Kind == kind {
			return e.Prev
		}
	}
	return "none"
}

// TestJournalUnwritable: when the journal cannot be written, the job ends
// before an agent begins to work.
func TestJournalUnwritable(t *testing.T) {
	t.Parallel()
	for _, kind := range []trial.EventKind{trial.EventAgentStart, trial.EventEnd} {
		err := job.FailedJournal(t.TempDir(), trial.Event{Kind: kind, Result: &jobdir.TrialResult{}, ResultFile: &jobdir.FileDigest{}})
		if err == nil || !strings.HasPrefix(err.Error(), "writing journal: ") {
			t.Errorf("%s: the job goes on with error %v", kind, err)
		}
	}
}

// kinds lists the events of a journal, with the trial's task where there is one.
func kinds(t *testing.T, dir string) []string {
	t.Helper()
	j, err := journal.Load(dir)
	if err != nil || j.Torn {
		t.Fatal(err, j.Torn)
	}
	var list []string
	for _, e := range j.Entries {
		list = append(list, string(e.Kind))
	}
	return list
}

// TestRetryEvent: the event of a retry says which attempt of which trial ended
// with what, and it is no end of a trial without a result.
func TestRetryEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, writeDataset(t, "flaky"), fake.Config{Rules: []fake.Rule{
			fake.On("solve.sh", fake.Each(fake.Fail(pythonError("ValueError")), fake.Exit(0))), grant("1"),
		}})
		h.cfg.Retry.MaxRetries = 1
		out := h.run(t)
		var retries []job.Retry
		for _, e := range h.events {
			if e.Kind != job.EventRetry {
				continue
			}
			retries = append(retries, *e.Retry)
			if e.Trial != nil || e.Progress.Ended.Outcomes[jobdir.ClassErroredWithoutReward] != 1 {
				t.Errorf("event %+v", e)
			}
		}
		want := job.Retry{TrialName: out.Records[0].TrialName, TaskName: "flaky", Attempt: 1, ExceptionType: "ValueError", Wait: time.Second}
		if len(retries) != 1 || retries[0] != want {
			t.Errorf("got %+v, want %+v", retries, want)
		}
		if got := out.Progress.Ended; got.Trials != 1 || got.Outcomes[jobdir.ClassScored] != 1 || len(got.Errors) != 0 {
			t.Errorf("after the retry %+v", got)
		}
	})
}
