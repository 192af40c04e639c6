package readjobs

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/proctor-run/proctor/job/junit"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// Job directories that Harbor itself wrote: of the oracle with two attempts at
// each of four tasks, and of an agent that does nothing.
const (
	oracleJob = "testdata/mixed-oracle"
	nopJob    = "testdata/mixed-nop"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	text, err := Describe(t.Context(), oracleJob)
	if err != nil || strings.Contains(text, "differs") || !strings.Contains(text, "oracle__") {
		t.Errorf("%v, described as:\n%s", err, text)
	}
}

func TestTampered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(oracleJob)); err != nil {
		t.Fatal(err)
	}
	if found, err := Tampered(t.Context(), dir); err != nil || len(found) > 0 {
		t.Errorf("found %q, error %v", found, err)
	}
	results, err := filepath.Glob(filepath.Join(dir, "tenth__*", "result.json"))
	if err != nil || len(results) == 0 {
		t.Fatal(results, err)
	}
	if err := os.Remove(results[0]); err != nil {
		t.Fatal(err)
	}
	found, err := Tampered(t.Context(), dir)
	if err != nil || !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, "8 trials were planned, and 7 trials have a result") }) {
		t.Errorf("found %q, error %v", found, err)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Summary(t.Context(), &out, oracleJob); err != nil {
		t.Fatal(err)
	}
	var job struct {
		State    string         `json:"state"`
		Planned  int            `json:"n_planned"`
		Outcomes map[string]int `json:"outcomes"`
	}
	if err := json.Unmarshal(out.Bytes(), &job); err != nil {
		t.Fatal(err)
	}
	ended := 0
	for _, n := range job.Outcomes {
		ended += n
	}
	if job.State != "finished" || job.Planned != 8 || ended != 8 {
		t.Errorf("summed up as %s", out.String())
	}
	if err := Summary(t.Context(), &out, t.TempDir()); err == nil {
		t.Error("an empty directory is a job")
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	records, err := Records(t.Context(), oracleJob)
	if err != nil || len(records) != 8 {
		t.Fatalf("%d records, %v, want 8", len(records), err)
	}
	if !slices.ContainsFunc(records, func(r jobdir.Record) bool { return r.ExceptionType != "" }) {
		t.Error("no trial of the job has an exception")
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	line, err := Line(oracleJob)
	if err != nil || !strings.HasPrefix(line, outcome.Prefix) {
		t.Errorf("line %q, %v", line, err)
	}
	missing, err := Line(t.TempDir())
	if err != nil || !strings.Contains(missing, string(outcome.ResultMissing)) {
		t.Errorf("without a result: %q, %v", missing, err)
	}
}

func TestBetter(t *testing.T) {
	t.Parallel()
	better, p, err := Better(t.Context(), nopJob, oracleJob)
	if err != nil || !better || p <= 0 || p > 1 {
		t.Errorf("the oracle is better than nothing: %t, p %g, %v", better, p, err)
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := journal.Open(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []journal.Kind{journal.JobStarted, journal.JobResumed} {
		if err := w.AppendSync(journal.Entry{Kind: kind, Schema: journal.Schema}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := Runs(dir); err != nil || n != 2 {
		t.Errorf("%d runs, %v, want 2", n, err)
	}
}

func TestJUnit(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := JUnit(t.Context(), &out, oracleJob); err != nil || !strings.Contains(out.String(), "<testsuite ") {
		t.Errorf("%v, %s", err, out.String())
	}
}

// A trial's result can be read whole, and written so that it reads the same.
func TestResultSurvives(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(oracleJob, "*", scan.ResultFile))
	if err != nil || len(paths) == 0 {
		t.Fatal("no trials", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := jobdir.ParseTrialResult(data)
		if err != nil {
			t.Fatal(err)
		}
		text := r.AppendJSON(nil, nil)
		again, err := jobdir.ParseTrialResult(text)
		if err != nil || !bytes.Equal(again.AppendJSON(nil, nil), text) {
			t.Errorf("%s is read in another way when it was written again: %v", path, err)
		}
	}
}

func TestFinalize(t *testing.T) {
	t.Parallel()
	job := fstest.MapFS{"trials/a__1/result.json": {Data: []byte(`{"status": "completed", "score": 1.0, "task_name": "a", "trial_name": "a__1"}`)}}
	line, err := outcome.Of([]byte(`{"n_total_trials": 1, "stats": {"n_completed_trials": 1, "evals": {"x": {"metrics": [{"mean": 1.0}]}}}}`)).Line()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Finalize(job, "a", 1, 1, outcome.Run{Stdout: line + "\n"})
	if err != nil || len(f.Trials) != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	if best, err := Kept([]float64{0.25, 0.75}, outcome.KeepBest); err != nil || best.Score != 0.75 {
		t.Errorf("best of the tasks: %g, %v", best.Score, err)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	names, lock := Plan([]string{"a", "b"}, 2, "mine")
	if len(names) != 4 || !bytes.Contains(lock, []byte(`"mine"`)) {
		t.Errorf("%v, %s", names, lock)
	}
}

// Numbers stay what they are: an int is not a float.
func TestNumbers(t *testing.T) {
	t.Parallel()
	r, err := reward.ParseText([]byte("1_0.50\n"), "reward.txt")
	if err != nil || value.Repr(r.Object()) != "{'reward': 10.5}" {
		t.Errorf("%s, %v", value.Repr(r.Object()), err)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	cases, err := Failures(t.Context(), filepath.Join("testdata", "mixed-nop"))
	if err != nil || len(cases) == 0 {
		t.Fatalf("%d failures, %v", len(cases), err)
	}
	for _, c := range cases {
		if c.State == junit.Passed {
			t.Errorf("%s passed", c.Name)
		}
	}
}

func TestTrial(t *testing.T) {
	t.Parallel()
	job := fstest.MapFS{"trials/one__attempt-1/result.json": {Data: []byte(`{"status": "completed", "score": 0.5}`)}}
	r, err := Trial(job, "one", "one__attempt-1")
	if err != nil || r.Score == nil || *r.Score != 0.5 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Trial(job, "one", "one__attempt-2"); err == nil {
		t.Error("a trial that is not there is read")
	}
	if status, final := Final(outcome.Finalized{Status: "completed", Final: true}); status != "completed" || !final {
		t.Errorf("%s, %v", status, final)
	}
}

func TestOne(t *testing.T) {
	t.Parallel()
	results, err := filepath.Glob(filepath.Join("testdata", "mixed-oracle", "*", "result.json"))
	if err != nil || len(results) == 0 {
		t.Fatal(results, err)
	}
	if r, err := One(results[0]); err != nil || r.TrialName == "" {
		t.Errorf("%+v, %v", r, err)
	}
}
