package report_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/traces"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/score"
)

const (
	harborJobs  = "../jobdir/testdata/jobs" // that Harbor itself wrote
	interrupted = "testdata/jobs/interrupted"
	greeter     = "../examples/tasks/hello-world"
	trajectory  = "testdata/trajectory.json"
)

// jsonCases has for each file of testdata/json what it holds: the output of a
// command with --json.
var jsonCases = map[string]func(*testing.T) any{
	"job-finished":       func(t *testing.T) any { return readJob(t, harborJobs+"/mixed-oracle") },
	"job-interrupted":    func(t *testing.T) any { return readJob(t, interrupted) },
	"digest-finished":    func(t *testing.T) any { return readJob(t, harborJobs+"/mixed-oracle").Digest() },
	"digest-interrupted": func(t *testing.T) any { return readJob(t, interrupted).Digest() },
	"trial-errored":      func(t *testing.T) any { return readTrial(t, harborJobs+"/mixed-oracle/no-reward__Ct8qpvf", 3) },
	"trial-steps":        func(t *testing.T) any { return readTrial(t, harborJobs+"/multi-oracle/two-scores__EkX3tR8", 10) },
	"trial-noted":        func(t *testing.T) any { return readTrial(t, interrupted+"/no-reward__Ct8qpvf", 10) },
	"trial-unfinished":   func(t *testing.T) any { return readTrial(t, interrupted+"/write-greeting__CWQUuue", 10) },
	"jobs":               func(t *testing.T) any { return must(t)(report.ReadJobs(harborJobs, time.UTC)) },
	"score":              func(t *testing.T) any { return report.NewScore(rescored(t, harborJobs+"/mixed-oracle")) },
	"score-check": func(t *testing.T) any {
		r := rescored(t, harborJobs+"/multi-oracle")
		s := report.NewScore(r)
		s.Compare(r.Check())
		return s
	},
	"comparison": func(t *testing.T) any {
		opts := score.CompareOptions{Confidence: 0.95}
		return must(t)(report.Compare(t.Context(), harborJobs+"/mixed-nop", harborJobs+"/mixed-oracle", opts))
	},
	"task":         func(t *testing.T) any { return must(t)(report.ReadTask(greeter)) },
	"task-valid":   func(*testing.T) any { return report.ValidateTask(greeter) },
	"task-invalid": func(*testing.T) any { return report.ValidateTask("testdata/tasks/invalid") },
	"trajectory":   func(t *testing.T) any { return must(t)(report.ReadTrajectory(file(t, trajectory), report.AllSteps())) },
	"trajectory-steps": func(t *testing.T) any {
		return must(t)(report.ReadTrajectory(file(t, trajectory), report.Steps{First: 2, Last: 2}))
	},
	"trajectory-valid": func(t *testing.T) any { return must(t)(report.ValidateTrajectory(file(t, trajectory), true)) },
}

func TestJSON(t *testing.T) {
	t.Parallel()
	for _, path := range jobtest.Glob(t, "testdata/json/*.json") {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if jsonCases[name] == nil {
			t.Errorf("nothing makes %s", path)
		}
	}
	for name, made := range jsonCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			v := made(t)
			values := []any{v}
			if jobs, ok := v.([]report.ListedJob); ok {
				values = values[:0]
				for _, j := range jobs {
					values = append(values, j)
				}
			}
			for _, v := range values {
				if err := report.WriteJSON(&out, v); err != nil {
					t.Fatal(err)
				}
			}
			jobtest.EqualText(t, strings.TrimSuffix(out.String(), "\n"), jobtest.Read(t, "testdata/json/"+name+".json"))
		})
	}
}

func must(t *testing.T) func(any, error) any {
	t.Helper()
	return func(v any, err error) any {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func readJob(t *testing.T, dir string) *report.Job {
	t.Helper()
	j, err := report.ReadJob(t.Context(), dir, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func readTrial(t *testing.T, dir string, lines int) *report.Trial {
	t.Helper()
	s, err := report.ReadTrial(dir, lines)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func rescored(t *testing.T, dir string) *score.Rescored {
	t.Helper()
	r, err := score.Rescore(t.Context(), dir, score.RescoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func file(t *testing.T, path string) traces.File {
	t.Helper()
	files, err := traces.Files(path)
	if err != nil || len(files) != 1 {
		t.Fatalf("%d trajectories at %s, %v", len(files), path, err)
	}
	return files[0]
}

// What is named and is not there is told from what is there and is not valid.
func TestErrors(t *testing.T) {
	t.Parallel()
	_, noJob := report.ReadJob(t.Context(), filepath.Join(t.TempDir(), "none"), time.UTC)
	_, emptyJob := report.ReadJob(t.Context(), t.TempDir(), time.UTC)
	_, noTrial := report.ReadTrial(filepath.Join(t.TempDir(), "none"), 1)
	_, emptyTrial := report.ReadTrial(t.TempDir(), 1)
	for what, err := range map[string]error{"no job": noJob, "no trials": emptyJob, "no trial": noTrial, "no result": emptyTrial} {
		if e, ok := errors.AsType[*report.NotFoundError](err); !ok || e.Path == "" || !strings.Contains(err.Error(), "is not a "+e.Kind+" directory") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if !errors.Is(noJob, fs.ErrNotExist) || !errors.Is(noTrial, fs.ErrNotExist) {
		t.Errorf("the reasons are lost: %v, %v", noJob, noTrial)
	}
	if _, err := report.ReadJobs(filepath.Join(t.TempDir(), "none"), time.UTC); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory of jobs: %v", err)
	}

	_, err := report.Compare(t.Context(), harborJobs+"/mixed-nop", harborJobs+"/mixed-oracle", score.CompareOptions{GroupB: "none"})
	if e, ok := errors.AsType[*report.NoGroupError](err); !ok || e.Dir != harborJobs+"/mixed-oracle" || !slices.Equal(e.Groups, []string{"oracle__mixed"}) {
		t.Errorf("a group that is not there: %v", err)
	}
	_, notBoth := report.Compare(t.Context(), harborJobs+"/mixed-nop", t.TempDir(), score.CompareOptions{})
	if _, ok := errors.AsType[*report.NotFoundError](notBoth); !ok {
		t.Errorf("compared with no job: %v", notBoth)
	}
	_, several := report.Compare(t.Context(), harborJobs+"/mixed-nop", harborJobs+"/multi-oracle", score.CompareOptions{})
	if e, ok := errors.AsType[*report.CompareError](several); !ok || !errors.Is(several, e.Err) || !strings.Contains(several.Error(), "several rewards") {
		t.Errorf("compared with a job of several rewards: %v", several)
	}

	broken := filepath.Join(t.TempDir(), "trajectory.json")
	jobtest.Write(t, broken, []byte(`{"steps": 1}`))
	_, badTrial := report.ReadTrial(interrupted+"/broken__CCCCCCC", 1)
	_, badTask := report.ReadTask("testdata/tasks/invalid")
	_, badTrajectory := report.ReadTrajectory(file(t, broken), report.AllSteps())
	for part, err := range map[string]error{"broken__CCCCCCC": badTrial, "task.toml": badTask, broken: badTrajectory} {
		if _, ok := errors.AsType[*report.InvalidError](err); !ok || !strings.Contains(err.Error(), part) {
			t.Errorf("want an error that names %s, got %v", part, err)
		}
	}
}

// A run without a noted end runs as long as its process lives, or could live on
// another machine; a later run shows that it does not.
func TestJournalRuns(t *testing.T) {
	t.Parallel()
	self, host := thisProcess(t)
	gone := self
	gone.PID = 1 << 30
	start := func(owner *procid.ID, host string) journal.Entry {
		return journal.Entry{Kind: journal.JobStarted, Schema: journal.Schema, Owner: owner, Host: host}
	}
	for _, c := range []struct {
		entries []journal.Entry
		want    []report.RunEnd
	}{
		{[]journal.Entry{start(&self, host)}, []report.RunEnd{report.RunRunning}},
		{[]journal.Entry{start(&gone, host)}, []report.RunEnd{report.RunKilled}},
		{[]journal.Entry{start(&gone, "another "+host)}, []report.RunEnd{report.RunRunning}},
		{[]journal.Entry{start(nil, host)}, []report.RunEnd{report.RunKilled}},
		{
			[]journal.Entry{start(&self, host), start(&self, host), {Kind: journal.JobFailed, Reason: "no space"}},
			[]report.RunEnd{report.RunKilled, report.RunFailed},
		},
		{[]journal.Entry{start(&self, host), {Kind: journal.JobFinished}}, []report.RunEnd{report.RunFinished}},
		{[]journal.Entry{start(&self, host), {Kind: journal.JobInterrupted}}, []report.RunEnd{report.RunInterrupted}},
	} {
		dir := t.TempDir()
		writeJournal(t, dir, c.entries)
		var got []report.RunEnd
		for _, r := range report.ReadJournal(dir).Runs {
			got = append(got, r.How)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("the runs ended %q, want %q", got, c.want)
		}
	}
	if j := report.ReadJournal(t.TempDir()); j != nil {
		t.Errorf("a job without a journal has %+v", j)
	}
}

// Logs are what agents left: they may be large, or links out of the trial.
func TestLogTails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret.txt")
	jobtest.Write(t, secret, []byte("secret"))
	jobtest.Write(t, filepath.Join(dir, "result.json"), []byte(jobtest.Read(t, interrupted+"/no-reward__Ct8qpvf/result.json")))
	jobtest.Write(t, filepath.Join(dir, "agent", "big.log"), bytes.Repeat([]byte("0123456789\n"), 100_000))
	jobtest.Write(t, filepath.Join(dir, "steps", "one", "verifier", "out.txt"), []byte("a\nb\n"))
	jobtest.Write(t, filepath.Join(dir, "artifacts", "deep.log"), []byte("not a log"))
	jobtest.Write(t, filepath.Join(dir, "verifier", "reward.txt"), []byte("1"))
	if err := os.Symlink(secret, filepath.Join(dir, "agent", "secret.txt")); err != nil {
		t.Fatal(err)
	}
	logs := readTrial(t, dir, 1).Logs
	if len(logs) != 2 {
		t.Fatalf("logs %+v, want two", logs)
	}
	if l := logs[0]; l.File != "agent/big.log" || !l.Cut || !slices.Equal(l.Lines, []string{"0123456789"}) {
		t.Errorf("the large log is shown as %+v", l)
	}
	if l := logs[1]; l.File != "steps/one/verifier/out.txt" || !l.Cut || !slices.Equal(l.Lines, []string{"b"}) {
		t.Errorf("the log of the step is shown as %+v", l)
	}
	if logs := readTrial(t, dir, 0).Logs; len(logs) != 0 {
		t.Errorf("without lines there are the logs %+v", logs)
	}
	if all := readTrial(t, dir, 1<<20).Logs[0]; !all.Cut || len(all.Lines) > 1+64<<10/11 {
		t.Errorf("%d lines of the large log are read", len(all.Lines))
	}
}

// TestCompareJobs: jobs that were read compare as their directories do.
func TestCompareJobs(t *testing.T) {
	t.Parallel()
	a, b := harborJobs+"/mixed-nop", harborJobs+"/mixed-oracle"
	for _, o := range []score.CompareOptions{{Confidence: 0.95}, {GroupB: "none"}, {Reward: "absent"}} {
		want, wantErr := report.Compare(t.Context(), a, b, o)
		got, err := report.CompareJobs(readJob(t, a), readJob(t, b), o)
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("%+v: got %v, want %v", o, err, wantErr)
		}
		if err == nil {
			jobtest.EqualText(t, written(t, got), written(t, want))
		}
	}
	unreadable := t.TempDir()
	if err := os.CopyFS(unreadable, os.DirFS(a)); err != nil {
		t.Fatal(err)
	}
	jobtest.Write(t, jobtest.Glob(t, filepath.Join(unreadable, "third__*", "result.json"))[0], []byte("{"))
	_, wantErr := report.Compare(t.Context(), unreadable, b, score.CompareOptions{})
	if _, err := report.CompareJobs(readJob(t, unreadable), readJob(t, b), score.CompareOptions{}); err == nil || wantErr == nil || err.Error() != wantErr.Error() {
		t.Errorf("of results that cannot be read: %v, want %v", err, wantErr)
	}
}

func written(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.WriteJSON(&out, v); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
