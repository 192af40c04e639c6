package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/value"
)

// quickestFlags choose the environment in which a sandbox takes the least time.
func quickestFlags(t testing.TB) []string {
	t.Helper()
	for _, e := range environments() {
		if e.quickest() {
			return e.flags(t)
		}
	}
	t.Fatal("no environment is the quickest")
	return nil
}

// onlyLine is the result line of what an evaluation printed, which must be the only one,
// and valid.
func onlyLine(t testing.TB, stdout string) *value.Object {
	t.Helper()
	text, ok := strings.CutPrefix(strings.TrimSuffix(stdout, "\n"), outcome.Prefix)
	if !ok || strings.Contains(text, "\n") {
		t.Fatalf("want one result line, got %q", stdout)
	}
	v, err := value.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outcome.Emit(v); err != nil {
		t.Errorf("the line is not valid: %v", err)
	}
	return v.(*value.Object)
}

// TestLineWhenSignalled: a signal in any phase of a trial leaves one line, which says so,
// and nothing else.
func TestLineWhenSignalled(t *testing.T) {
	t.Parallel()
	for _, ph := range phases() {
		for how, list := range map[string][]syscall.Signal{"once": {syscall.SIGTERM}, "twice": {syscall.SIGTERM, syscall.SIGTERM}} {
			if how == "twice" && ph.name != "agent" {
				continue // it goes the same way
			}
			t.Run(ph.name+"/"+how, func(t *testing.T) {
				t.Parallel()
				flags := quickestFlags(t)
				p := newPlace(t)
				dir := filepath.Join(p.dir, "eval")
				r := ph.startAs(t, p, flags, filepath.Join(dir, "job"), "ownrunner", "run", "--task", "tasks", "--job-dir", dir, "-n", "1")
				r.signalled(t, list...)
				r.ids = append(r.ids, p.sandboxes(t)...)
				line := onlyLine(t, r.stdout.String())
				if reason, _ := line.Get("reason_code"); r.cmd.ProcessState.ExitCode() != exitFailed || reason != value.Str(outcome.CancelledError) {
					t.Errorf("exit code %d with %s\n%s", r.cmd.ProcessState.ExitCode(), value.Repr(line), r.said())
				}
				r.trial = filepath.Base(p.dir) // other tests have trials of this name
				r.assertNothingLeft(t, p)
				if records, err := os.ReadDir(filepath.Join(dir, "trials")); err != nil || len(records) != 0 {
					t.Errorf("a trial that was cancelled has a record: %v, %v", records, err)
				}
			})
		}
	}
}

// evaluationTasks makes two tasks, one of them without a reward.
func evaluationTasks(t testing.TB, p place) {
	t.Helper()
	for name, test := range map[string]string{"a": "echo 1 > /logs/verifier/reward.txt\n", "b": "true\n"} {
		writeFiles(t, filepath.Join(p.dir, "tasks", name), map[string]string{
			"task.toml": "", "instruction.md": "Do it.\n", "environment/Dockerfile": "FROM debian:bookworm-slim\n",
			"solution/solve.sh": "true\n", "tests/test.sh": test,
		})
	}
}

// evaluate is a run of the tasks.
func (p place) evaluate(t testing.TB, flags ...string) []string {
	t.Helper()
	args := []string{"ownrunner", "run", "--task", "tasks", "--job-dir", filepath.Join(p.dir, "eval"), "-a", "oracle", "-n", "1", "-q"}
	return append(append(args, quickestFlags(t)...), flags...)
}

const wholeLine = `{'reason_code': None, 'resolved': 1, 'score': 0.5, 'status': 'failed', 'total': 2, 'trial_diagnostics': `

// TestLineAfterKills: whenever a run is killed, the same command goes on to the same line.
func TestLineAfterKills(t *testing.T) {
	t.Parallel()
	const most = 14 // entries of a journal of two trials, and some
	for n := range most {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			if n%5 != 3 {
				need.Patience(t)
			}
			p := newPlace(t)
			evaluationTasks(t, p)
			args := p.evaluate(t)
			cmd := p.command(args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = cmd.Wait()
			}()
			log := filepath.Join(p.dir, "eval", "job", journal.File)
			for entries := -1; entries < n; {
				select {
				case <-ended:
					entries = most
				case <-time.After(time.Millisecond):
					data, err := os.ReadFile(log)
					if err == nil {
						entries = bytes.Count(data, []byte("\n"))
					}
				}
			}
			_ = cmd.Process.Kill()
			<-ended
			done := p.run(t, args...)
			if line := value.Repr(onlyLine(t, done.stdout)); done.code != 0 || !strings.HasPrefix(line, wholeLine) {
				t.Errorf("exit code %d with %s\n%s", done.code, line, done.stderr)
			}
		})
	}
}

// TestLineThroughFullPipes: a standard output that is read late and a standard error that
// nobody reads hold up neither the trials nor the line.
func TestLineThroughFullPipes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	evaluationTasks(t, p)
	stdout, stdoutWriter := fullPipe(t)
	_, stderrWriter := fullPipe(t)
	cmd := p.command(p.evaluate(t)...)
	cmd.Stdout, cmd.Stderr = stdoutWriter, stderrWriter
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = stdoutWriter.Close()
	record := filepath.Join(p.dir, "eval", "trials", "b__attempt-0", "result.json")
	for !isFile(record) {
		if cmd.Process.Signal(syscall.Signal(0)) != nil {
			t.Fatal("it ended without its last record")
		}
		time.Sleep(time.Millisecond)
	}
	data, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	_, said, _ := strings.Cut(string(data), "\n")
	if line := value.Repr(onlyLine(t, said)); !strings.HasPrefix(line, wholeLine) {
		t.Errorf("the line is %s", line)
	}
}

// fullPipe is a pipe that holds one line and takes nothing more.
func fullPipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	size, err := unix.FcntlInt(w.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(append(bytes.Repeat([]byte("x"), size-1), '\n')); err != nil {
		t.Fatal(err)
	}
	return r, w
}

// TestRecordsWithoutReaders: where standard output and error are closed, the trials run to
// their end all the same.
func TestRecordsWithoutReaders(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	evaluationTasks(t, p)
	args := p.evaluate(t)
	cmd := p.command(args...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Run()
	_ = w.Close()
	if code := cmd.ProcessState.ExitCode(); err == nil || code != exitFailed {
		t.Errorf("exit code %d, %v", code, err)
	}
	if done := p.run(t, args...); done.code != 0 || !strings.HasPrefix(value.Repr(onlyLine(t, done.stdout)), wholeLine) || strings.Contains(done.stderr, "resuming") {
		t.Errorf("again: exit code %d, %s%s", done.code, done.stdout, done.stderr)
	}
}

// TestLineOnAFullDisk: what cannot be written is the line's reason, and with room again
// the same command goes on.
func TestLineOnAFullDisk(t *testing.T) {
	t.Parallel()
	need.Root(t)
	p := newPlace(t)
	evaluationTasks(t, p)
	writeFiles(t, filepath.Join(p.dir, "tasks", "a"), map[string]string{"solution/solve.sh": "head -c 200000 /dev/zero > /logs/agent/zeros 2> /dev/null\ntrue\n"})
	disk := filepath.Join(p.dir, "eval")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=120k"); err != nil {
		need.That(t, "mount", false, "needs to mount file systems: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	done := p.run(t, p.evaluate(t)...)
	line := onlyLine(t, done.stdout)
	if status, _ := line.Get("status"); status != value.Str(outcome.Failed) || done.code == exitOK && !line.Has("trial_diagnostics") {
		t.Errorf("exit code %d with %s\n%s", done.code, value.Repr(line), done.stderr)
	}
	if done.code != exitFailed {
		t.Errorf("exit code %d, want %d: %s\n%s", done.code, exitFailed, value.Repr(line), done.stderr)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=16m"); err != nil {
		t.Fatal(err)
	}
	done = p.run(t, p.evaluate(t)...)
	if line := onlyLine(t, done.stdout); done.code != 0 {
		t.Errorf("with room again: exit code %d with %s\n%s", done.code, value.Repr(line), done.stderr)
	}
}

// TestSameLineInEveryEnvironment runs a whole evaluation with pinned tasks and a policy
// everywhere.
func TestSameLineInEveryEnvironment(t *testing.T) {
	t.Parallel()
	need.Patience(t)
	pinned := newPlace(t)
	examples := repositoryPath(t, "examples/tasks")
	policy, digests := filepath.Join(pinned.dir, "policy.json"), filepath.Join(pinned.dir, "digests.json")
	writeFiles(t, pinned.dir, map[string]string{
		"policy.json": `{"schema_version": 1, "per_task_aggregation": "best_of_k", "keep_policy": "drop_lowest_n", "drop_lowest_n": 1, "threshold_f64be": null}`,
	})
	if done := pinned.run(t, "ownrunner", "manifest", examples, "-o", digests); done.code != 0 {
		t.Fatal(done.stderr)
	}
	for _, where := range environments() {
		t.Run(where.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			args := []string{
				"ownrunner", "run", "--task", examples, "--job-dir", filepath.Join(p.dir, "eval"), "-k", "3", "-n", "2", "-q",
				"--digest-manifest", digests, "--policy", policy,
			}
			done := p.run(t, append(args, where.flags(t)...)...)
			const want = `'n_kept_tasks': 3, 'n_passed_tasks': 4, 'n_tasks': 4, 'per_task_aggregation': 'best-of-k', 'score': 1.0`
			line := value.Repr(onlyLine(t, done.stdout))
			if done.code != 0 || !strings.Contains(line, want) || !strings.HasSuffix(line, `'reason_code': None, 'resolved': 12, 'score': 1.0, 'status': 'completed', 'total': 12}`) {
				t.Errorf("exit code %d with %s\n%s", done.code, line, done.stderr)
			}
		})
	}
}
