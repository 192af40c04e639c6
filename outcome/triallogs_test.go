package outcome_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/proctor-run/proctor/outcome"
)

func TestReadTrialsListsLogs(t *testing.T) {
	t.Parallel()
	job := fstest.MapFS{}
	for _, name := range []string{
		"a/agent/b.txt", "a/agent/a.log", "a/agent/a/deep.log", "a/trial.log", "a/verifier/test-stdout.txt", "a/verifier/other.txt",
		"a/exception.txt", "a/own/out.txt", "b/out.txt", "c/agent",
	} {
		job["trials/"+name] = &fstest.MapFile{}
	}
	job["trials/a/result.json"] = &fstest.MapFile{Data: []byte(`{"score": 1.0, "stdout_path": "./own/out.txt", "stderr_path": "../b/out.txt"}`)}
	job["trials/b/result.json"] = &fstest.MapFile{Data: []byte(`{"score": 1.0, "stdout_path": "/etc/passwd", "stderr_path": "gone.txt"}`)}
	records, err := outcome.ReadTrials(job, "t")
	if err != nil || len(records) != 3 {
		t.Fatalf("got %+v, %v", records, err)
	}
	a := records[0]
	if got, want := strings.Join(a.Logs, " "), "trials/a/agent/ trials/a/agent/a/deep.log trials/a/agent/a.log trials/a/agent/b.txt "+
		"trials/a/trial.log trials/a/verifier/test-stdout.txt trials/a/exception.txt"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if a.StdoutFile != "trials/a/own/out.txt" || a.StderrFile != "" {
		t.Errorf("got %q and %q, which leads out", a.StdoutFile, a.StderrFile)
	}
	for _, r := range records[1:] {
		if len(r.Logs) != 0 || r.StdoutFile != "" || r.StderrFile != "" {
			t.Errorf("got %+v", r)
		}
	}
}

func TestReadTrialsBoundsLogs(t *testing.T) {
	t.Parallel()
	job := fstest.MapFS{"trials/a/result.json": {Data: []byte(`{}`)}, "trials/a/trial.log": {}}
	for i := range 10_100 {
		job[fmt.Sprintf("trials/a/agent/%05d", i)] = &fstest.MapFile{}
	}
	deep := "trials/b/agent/" + strings.Repeat("d/", 70) + "f"
	job[deep] = &fstest.MapFile{}
	records, err := outcome.ReadTrials(job, "t")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(records[0].Logs); n < 9_000 || n > 10_001 || !slices.Contains(records[0].Logs, "trials/a/trial.log") {
		t.Errorf("%d logs", n)
	}
	if slices.Contains(records[1].Logs, deep) {
		t.Error("however deep, a file is listed")
	}
}
