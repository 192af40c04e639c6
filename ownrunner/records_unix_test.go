//go:build unix

package ownrunner_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/planted"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/ownrunner"
)

// TestRecordsThatAreNoFiles: whatever stands in a record's place is an errored trial, and
// what stands in the place of all of them holds none. Nothing is waited for.
func TestRecordsThatAreNoFiles(t *testing.T) {
	t.Parallel()
	good := map[string]string{"trials/a/result.json": `{"status": "completed", "score": 1.0}`, "trials/b/result.json": `{"status": "completed", "score": 0.5}`}
	for _, kind := range planted.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "task-1")
			planted.Files(t, dir, good)
			kind.Put(t, filepath.Join(dir, "trials", "a", "result.json"))
			found, err := ownrunner.ReadRecords(dir, "")
			if err != nil || len(found) != 2 || found[0].Status != outcome.TrialErrored || found[0].Reason != string(outcome.TrialResultMalformed) || found[0].Task != "task-1" {
				t.Fatalf("got %+v, %v", found, err)
			}
			if found[1].Status != outcome.TrialCompleted || *found[1].Score != 0.5 {
				t.Errorf("got %+v", found[1])
			}
			alone := t.TempDir()
			kind.Put(t, filepath.Join(alone, "trials"))
			if found, err := ownrunner.ReadRecords(alone, "t"); err != nil || len(found) != 0 {
				t.Errorf("in the place of all: got %+v, %v", found, err)
			}
		})
	}
	if _, err := ownrunner.ReadRecords(filepath.Join(t.TempDir(), "none"), ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: got %v", err)
	}
}

// TestLogsThatAreLinks: a link is no log, wherever it leads, and nothing behind it is.
func TestLogsThatAreLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	planted.Files(t, dir, map[string]string{
		"trials/a/result.json":    `{"score": 1.0, "stdout_path": "linked/secret.txt", "stderr_path": "err.txt"}`,
		"trials/a/agent/real.log": "", "trials/b/secret.txt": "", "trials/b/trial.log": "",
	})
	for link, target := range map[string]string{
		"trials/a/agent/file": "../../b/secret.txt", "trials/a/agent/dir": "../../b", "trials/a/agent/loop": ".",
		"trials/a/linked": "../b", "trials/a/err.txt": "../b/secret.txt", "trials/a/trial.log": "/etc/passwd", "trials/b/agent": "../a/agent",
	} {
		if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	found, err := ownrunner.ReadRecords(dir, "t")
	if err != nil || len(found) != 2 {
		t.Fatalf("got %+v, %v", found, err)
	}
	if got := strings.Join(found[0].Logs, " "); got != "trials/a/agent/ trials/a/agent/real.log" || found[0].StdoutFile+found[0].StderrFile != "" {
		t.Errorf("got %+v", found[0])
	}
	if got := strings.Join(found[1].Logs, " "); got != "trials/b/trial.log" {
		t.Errorf("got %+v", found[1])
	}
}
