package scan_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/value"
)

// sameRecord compares what two readers made of one file.
func sameRecord(a, b jobdir.Record) bool {
	return a.TrialName == b.TrialName && a.TaskName == b.TaskName && a.TaskChecksum == b.TaskChecksum &&
		a.AgentName == b.AgentName && a.ModelName == b.ModelName && a.Source == b.Source &&
		a.ExceptionType == b.ExceptionType && a.StepExceptionType == b.StepExceptionType && (a.Rewards == nil) == (b.Rewards == nil) &&
		jobtest.Compact(a.Rewards.Object()) == jobtest.Compact(b.Rewards.Object()) && sameUsage(a.Usage, b.Usage)
}

func sameUsage(a, b jobdir.Usage) bool {
	show := func(u jobdir.Usage) string {
		var s jobdir.Stats
		s.Usage = u
		r := jobdir.Result{Stats: s}
		return string(r.AppendJSON(nil))
	}
	return show(a) == show(b)
}

// TestReadRecord reads every trial result of the vectors and fixtures both
// ways.
func TestReadRecord(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, name := range jobtest.Fixtures() {
		for _, path := range jobtest.Glob(t, filepath.Join(name, "*", "result.json")) {
			texts = append(texts, jobtest.Read(t, path))
		}
	}
	for _, name := range vectors.Dir(t, "harbor-jobs", "*.json") {
		in := jobtest.Member[*value.Object](t, jobtest.Decode(t, vectors.File(t, "harbor-jobs/"+name)), "input")
		for _, doc := range jobtest.Member[value.List](t, in, "trial_results") {
			r, err := jobdir.ParseTrialResult(value.AppendDumps(nil, doc, value.DumpsOptions{}))
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(r.AppendJSON(nil, nil)))
			texts = append(texts, string(value.AppendDumps(nil, doc, value.DumpsOptions{})))
		}
	}
	path := filepath.Join(t.TempDir(), "some-trial", "result.json")
	for _, text := range texts {
		jobtest.Write(t, path, []byte(text))
		got, err := scan.ReadRecord(path)
		if err != nil {
			t.Fatal(err)
		}
		full, err := jobdir.ParseTrialResult([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if want := jobdir.RecordOf(&full); !sameRecord(got.Record, want) || got.Dir != "some-trial" || !slices.Equal(got.Phases, scan.PhasesOf(&full)) {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
	}
	t.Logf("%d results", len(texts))
}

func TestScan(t *testing.T) {
	t.Parallel()
	dir := jobtest.Copy(t, jobtest.Fixture("mixed-oracle"))
	for _, name := range []string{"unfinished__1", "broken__1"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	jobtest.Write(t, filepath.Join(dir, "broken__1", "result.json"), []byte(`{"id": }`))
	s, err := scan.Dir(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Records) != 8 || !slices.IsSortedFunc(s.Records, func(a, b scan.FileRecord) int { return strings.Compare(a.Dir, b.Dir) }) {
		t.Errorf("got %d records, want 8 in order", len(s.Records))
	}
	if !slices.Equal(s.Unfinished, []string{"unfinished__1"}) {
		t.Errorf("got unfinished %q", s.Unfinished)
	}
	if len(s.Errors) != 1 || !strings.Contains(s.Errors[0].Error(), "broken__1") {
		t.Errorf("got errors %v", s.Errors)
	}
}

func TestScanStops(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := scan.Dir(ctx, jobtest.Fixture("mixed-oracle")); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
	if _, err := scan.Dir(t.Context(), filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the directory does not exist", err)
	}
}

// stepErrors is a result whose trial has no exception, and two of whose steps have one.
const stepErrors = `{"task_name":"t","trial_name":"n","trial_uri":"u","task_id":{"path":"p"},"task_checksum":"c","config":{"task":{"path":"p"}},"agent_info":{"name":"a","version":"1"},"step_results":[{"step_name":"a","exception_info":null},{"step_name":"b","exception_info":{"exception_type":"First","exception_message":"m","exception_traceback":"","occurred_at":"2026-06-09T10:00:00"}},{"step_name":"c","exception_info":{"exception_type":"Second","exception_message":"m","exception_traceback":"","occurred_at":"2026-06-09T10:00:00"}}],"verifier_result":{"rewards":{"r":1}}}`

// TestStepException: the first exception of a step is known to both readers, and the
// trial has errored by it.
func TestStepException(t *testing.T) {
	t.Parallel()
	got, ok := scan.ScanRecord([]byte(stepErrors))
	full, err := jobdir.ParseTrialResult([]byte(stepErrors))
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if want := jobdir.RecordOf(&full); !sameRecord(got.Record, want) || want.StepExceptionType != "First" || want.ExceptionType != "" {
		t.Errorf("got %+v\nwant %+v", got.Record, want)
	}
	if got.Exception() != "First" || got.Class() != jobdir.ClassErroredWithReward {
		t.Errorf("exception %q, class %s", got.Exception(), got.Class())
	}
	if info, step := full.Failure(); info == nil || info.Type != "First" || step != "b" {
		t.Errorf("failure %v of step %q", info, step)
	}
}

// FuzzReadRecord compares the fast reader with the full one: where both read
// a text, they agree.
func FuzzReadRecord(f *testing.F) {
	for _, name := range jobtest.Fixtures() {
		paths, err := filepath.Glob(filepath.Join(name, "*", "result.json"))
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	for _, text := range []string{
		`{"task_name":"t","trial_name":"n","trial_uri":"u","task_id":{"path":"p"},"task_checksum":"c","config":{"task":{"path":"p"}},"agent_info":{"name":"a","version":"1"}}`,
		`{"task_name":"t","trial_name":"n","trial_uri":"u","task_id":{"path":"p"},"task_checksum":"c","config":{"task":{"path":"p"}},"agent_info":{"name":"a","version":"1","model_info":{"name":"m"}},"step_results":[{"step_name":"s","agent_result":{"cost_usd":1e400,"n_input_tokens":3}}],"verifier_result":{"rewards":{"r":null,"b":true,"x":-0.0,"big":123456789012345678901234567890}},"exception_info":{"exception_type":"E","exception_message":"\u00e9","exception_traceback":"","occurred_at":"2026-06-09T10:00:00"},"started_at":"2026-06-09T10:00:00.5Z"}`,
	} {
		f.Add([]byte(text))
	}
	f.Add([]byte(stepErrors))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := scan.ScanRecord(data)
		if !ok {
			return // the full reader decides
		}
		full, err := jobdir.ParseTrialResult(data)
		if err != nil {
			return // the fast reader does not look at everything
		}
		if want := jobdir.RecordOf(&full); !sameRecord(got.Record, want) {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
	})
}
