package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/procid"
)

const (
	attachedTrial  = "one-score__4Ucooi9"
	attachedResult = "trial one-score__4Ucooi9: reward 0.3"
)

// attached is a trial that is followed, and changes at each look as a test says.
type attached struct {
	t              *testing.T
	job, dir       string
	stdout, stderr bytes.Buffer
}

// attach makes a trial that has begun, of a job that this process works on.
func attach(t *testing.T) *attached {
	t.Helper()
	job := filepath.Join(t.TempDir(), "job")
	a := &attached{t: t, job: job, dir: filepath.Join(job, attachedTrial)}
	a.write("config.json", jobtest.Read(t, filepath.Join(jobtest.Fixture("multi-oracle"), attachedTrial, "config.json")))
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	guard, err := json.Marshal(jobdir.Holder{Owner: self, Host: host})
	if err != nil {
		t.Fatal(err)
	}
	jobtest.Write(t, filepath.Join(job, jobdir.GuardFile), guard)
	jobtest.Write(t, filepath.Join(job, "journal.jsonl"), nil)
	return a
}

func (a *attached) write(name, text string) {
	a.t.Helper()
	jobtest.Write(a.t, filepath.Join(a.dir, filepath.FromSlash(name)), []byte(text))
}

func (a *attached) move(from, to string) {
	a.t.Helper()
	at := func(name string) string { return filepath.Join(a.dir, filepath.FromSlash(name)) }
	if err := errors.Join(os.MkdirAll(filepath.Dir(at(to)), 0o755), os.Rename(at(from), at(to))); err != nil {
		a.t.Fatal(err)
	}
}

// extend adds to a file that is there.
func (a *attached) extend(name, text string) {
	a.t.Helper()
	f, err := os.OpenFile(filepath.Join(a.dir, filepath.FromSlash(name)), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *attached) end() {
	a.t.Helper()
	a.write("result.json", jobtest.Read(a.t, filepath.Join(jobtest.Fixture("multi-oracle"), attachedTrial, "result.json")))
}

func (a *attached) abandon() {
	a.t.Helper()
	if err := os.Remove(filepath.Join(a.job, jobdir.GuardFile)); err != nil {
		a.t.Fatal(err)
	}
}

// follow follows the trial, with one of the changes between each two looks, and expects
// that it ends after the last one.
func (a *attached) follow(path string, set func(*attachment), changes ...func()) {
	a.t.Helper()
	f, err := newAttachment(&Env{Stdout: &a.stdout, Stderr: &a.stderr}, path)
	if err != nil {
		a.t.Fatal(err)
	}
	if set != nil {
		set(f)
	}
	f.wait = func(context.Context) error {
		if len(changes) == 0 {
			return errors.New("it does not end")
		}
		changes[0]()
		changes = changes[1:]
		return nil
	}
	if err := f.run(a.t.Context()); err != nil {
		a.t.Error(err)
	}
	if len(changes) > 0 {
		a.t.Errorf("it ended %d changes early", len(changes))
	}
}

// said compares what was printed, without how long the trial took.
func (a *attached) said(want ...string) {
	a.t.Helper()
	got := strings.Split(strings.TrimSuffix(a.stdout.String(), "\n"), "\n")
	if last := len(got) - 1; strings.HasPrefix(got[last], "trial ") {
		got[last], _, _ = strings.Cut(got[last], " (")
	}
	if text := strings.Join(got, "\n"); text != strings.Join(want, "\n") {
		a.t.Errorf("got:\n%s\nwant:\n%s", text, strings.Join(want, "\n"))
	}
}

func TestAttachFollows(t *testing.T) {
	t.Parallel()
	a := attach(t)
	a.write("trial.log", "starting\n")
	a.follow(a.job, nil,
		func() { a.write("agent/oracle.txt", "one\npart") },
		func() { a.extend("agent/oracle.txt", "ial\n\x1b[31mred\xff\u202e\n") },
		func() {}, // nothing
		func() { // the next step has begun
			a.extend("agent/oracle.txt", "late")
			a.move("agent/oracle.txt", "steps/first/agent/oracle.txt")
			a.write("agent/oracle.txt", "two")
		},
		func() {
			a.extend("trial.log", "done\n")
			a.end()
		})
	a.said("trial.log: starting", "one", "partial", "\ufffd[31mred\ufffd\ufffd", "late", "two", "trial.log: done", attachedResult)
	if a.stderr.Len() > 0 {
		t.Errorf("it warns: %s", a.stderr.String())
	}
}

// TestAttachEnds: an attempt that is set aside for another, a process that has gone.
func TestAttachEnds(t *testing.T) {
	t.Parallel()
	a := attach(t)
	a.write("agent/oracle.txt", "first\n")
	a.follow(a.dir, nil,
		func() { a.move("agent/oracle.txt", "attempts/1/agent/oracle.txt") },
		func() { a.write("agent/oracle.txt", "second, cut sho") },
		a.abandon)
	a.said("first", "second, cut sho", "trial "+attachedTrial+": it has not ended, and nobody works on it any more")

	// What began without a guard is waited for.
	a = attach(t)
	a.abandon()
	if err := os.Remove(filepath.Join(a.job, "journal.jsonl")); err != nil {
		t.Fatal(err)
	}
	a.follow(a.dir, nil, func() {}, a.end)
	a.said(attachedResult)
	if !strings.Contains(a.stderr.String(), "whether this trial runs cannot be told") {
		t.Errorf("it says %s", a.stderr.String())
	}
}

func TestAttachOnce(t *testing.T) {
	t.Parallel()
	once := func(f *attachment) { f.once, f.lines = true, 1 }
	a := attach(t)
	a.write("agent/oracle.txt", "one\ntwo\nthr")
	a.write("trial.log", "a\nb\n")
	a.follow(a.dir, once)
	a.said("trial.log: b", "two", "thr", "trial "+attachedTrial+": it has not ended: it runs, or waits for its turn")

	a.stdout.Reset()
	a.follow(a.dir, func(f *attachment) { f.lines = 0 }, func() { a.extend("agent/oracle.txt", "ee\nfour\n") }, a.end)
	a.said("three", "four", attachedResult)
}

// TestAttachUnreadable: a log that is none is told once, and the trial followed.
func TestAttachUnreadable(t *testing.T) {
	t.Parallel()
	a := attach(t)
	a.write("agent/oracle.txt/x", "")
	a.write("trial.log", "a\n")
	a.follow(a.dir, nil, func() {}, func() {}, a.end)
	a.said("trial.log: a", attachedResult)
	if n := strings.Count(a.stderr.String(), "\n"); n != 1 || !strings.Contains(a.stderr.String(), "oracle.txt") {
		t.Errorf("it warns:\n%s", a.stderr.String())
	}
	a = attach(t)
	a.write("config.json", strings.ReplaceAll(jobtest.Read(t, filepath.Join(a.dir, "config.json")), `"oracle"`, `"langgraph"`))
	a.follow(a.dir, nil, a.end)
	if !strings.Contains(a.stderr.String(), "where agent langgraph keeps what it prints") {
		t.Errorf("it says %s", a.stderr.String())
	}
}

// TestAttachJob: a job stands for the one trial of it that runs.
func TestAttachJob(t *testing.T) {
	t.Parallel()
	a := attach(t)
	config := jobtest.Read(t, filepath.Join(a.dir, "config.json"))
	refused := func(want string) {
		t.Helper()
		if dir, err := trialToAttach(a.job); err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, %v, want %q", dir, err, want)
		}
	}
	if dir, err := trialToAttach(a.job); dir != a.dir || err != nil {
		t.Errorf("got %q, %v", dir, err)
	}
	for _, name := range []string{"b", "c", "d", "e", "f\x1b"} {
		jobtest.Write(t, filepath.Join(a.job, name, "config.json"), []byte(config))
	}
	refused("6 trials of job")
	refused(": b, c, d, e, f\ufffd, …")
	for _, name := range []string{"b", "c", "d", "e", "f\x1b"} {
		jobtest.Write(t, filepath.Join(a.job, name, "result.json"), nil)
	}
	if dir, err := trialToAttach(a.job); dir != a.dir || err != nil {
		t.Errorf("got %q, %v", dir, err)
	}
	a.abandon()
	refused("no trial of job")
}

// TestAttachClosedOutput: who does not take what is printed ends it.
func TestAttachClosedOutput(t *testing.T) {
	t.Parallel()
	a := attach(t)
	a.write("agent/oracle.txt", "one\n")
	f, err := newAttachment(&Env{Stdout: closedWriter{}, Stderr: &a.stderr}, a.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.run(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }
