package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
)

// disturbedTasks are tasks whose agents wait for a gate, and then come to different ends.
func disturbedTasks(t *testing.T, p place) {
	t.Helper()
	for name, tests := range map[string]string{
		"a": "echo 0.25 > /logs/verifier/reward.txt\n", "b": "test -s /logs/agent/work && echo 1 > /logs/verifier/reward.txt\n", "c": "true\n",
	} {
		writeFiles(t, filepath.Join(p.dir, "tasks", name), map[string]string{
			"task.toml": "", "instruction.md": "Wait.\n", "environment/Dockerfile": "FROM debian:bookworm-slim\n", "tests/test.sh": tests,
			"solution/solve.sh": "touch /logs/agent/here; until [ -e /logs/agent/go ]; do sleep 0.05; done; " +
				"head -c 65536 /dev/zero > /logs/agent/work || rm -f /logs/agent/work\n",
		})
	}
}

// disturbed is a place whose jobs, all called j, are let go on; the trial of task b only
// when it is not held.
type disturbed struct {
	place
	held  atomic.Bool
	flags []string
}

func newDisturbed(t *testing.T, flags []string) *disturbed {
	t.Helper()
	d := &disturbed{place: newPlace(t), flags: flags}
	disturbedTasks(t, d.place)
	done := make(chan struct{})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-tick.C:
				d.openGates()
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() { close(done); <-gone })
	return d
}

func (d *disturbed) openGates() {
	waiting, _ := filepath.Glob(filepath.Join(d.dir, "*", "j", "*", "agent", "here")) // the pattern is correct
	for _, here := range waiting {
		if d.held.Load() && strings.HasPrefix(filepath.Base(filepath.Dir(filepath.Dir(here))), "b__") {
			continue
		}
		_ = os.WriteFile(filepath.Join(filepath.Dir(here), "go"), nil, 0o644) // where that fails, the test tells
	}
}

// start runs the job until its second trial is held, with standard output and error
// going to w; prepare may change the process before it starts.
func (d *disturbed) start(t *testing.T, jobs string, w *os.File, prepare func(*running)) *running {
	t.Helper()
	d.held.Store(true)
	args := slices.Concat([]string{"run", "-p", "tasks", "-a", "oracle", "-n", "1", "-o", jobs, "--job-name", "j"}, d.flags)
	r := &running{cmd: d.command(args...), job: filepath.Join(d.dir, jobs, "j"), ended: make(chan struct{}), stderr: filepath.Join(d.dir, "stderr")}
	r.cmd.Stdout, r.cmd.Stderr = w, w
	if prepare != nil {
		prepare(r)
	}
	r.begin(t, d.place)
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-r.ended:
			t.Fatalf("it ended before it was disturbed: %s", r.said())
		}
		if here, _ := filepath.Glob(filepath.Join(r.job, "b__*", "agent", "here")); len(here) > 0 { // the pattern is correct
			return r
		}
	}
}

// numbers are all that a job came to, names of trials aside.
func numbers(t *testing.T, dir string) string {
	t.Helper()
	r := jobResult(t, dir)
	lines := []string{fmt.Sprintf("finished %v, %d completed, %d errored", r.FinishedAt != nil, r.Stats.NCompletedTrials, r.Stats.NErroredTrials), metricsText(r)}
	for task, rec := range jobRecords(t, dir) {
		lines = append(lines, task+": "+outcomeText(rec))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// resumesTo resumes a job and fails the test unless it then has the numbers that are wanted.
func (d *disturbed) resumesTo(t *testing.T, dir, want string) {
	t.Helper()
	d.held.Store(false)
	done := d.run(t, slices.Concat([]string{"job", "resume", dir}, d.flags[2:])...)
	if done.code != exitTrialErrors {
		t.Errorf("job resume: exit code %d, want %d\n%s", done.code, exitTrialErrors, done.stderr)
	}
	if got := numbers(t, filepath.Join(d.dir, dir)); got != want {
		t.Errorf("the job came to\n%s\nundisturbed it comes to\n%s", got, want)
	}
	checkWhole(t, filepath.Join(d.dir, dir))
	if left := d.sandboxes(t); len(left) > 0 {
		t.Errorf("directories of sandboxes are left: %q", left)
	}
}

// ends waits for the end of a disturbed run and returns what it said into a file.
func (r *running) ends(t *testing.T, code int, says ...string) {
	t.Helper()
	<-r.ended
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d\n%s", got, code, r.said())
	}
	for _, text := range says {
		if !strings.Contains(r.said(), text) {
			t.Errorf("it says nothing of %q:\n%s", text, r.said())
		}
	}
}

// TestDisturbedRuns: whatever becomes of the terminal, the reader, the disk and the
// directory of a run, it comes to the numbers of an undisturbed one, at once or when it is
// resumed.
func TestDisturbedRuns(t *testing.T) {
	t.Parallel()
	e := environments()[1]
	flags := e.flags(t)
	calm := newDisturbed(t, flags)
	if done := calm.run(t, slices.Concat([]string{"run", "-p", "tasks", "-a", "oracle", "-n", "1", "-o", "jobs", "--job-name", "j"}, flags)...); done.code != exitTrialErrors {
		t.Fatalf("exit code %d\n%s", done.code, done.stderr)
	}
	want := numbers(t, filepath.Join(calm.dir, "jobs", "j"))
	if !strings.Contains(want, "0.25") || !strings.Contains(want, "RewardFileNotFoundError") {
		t.Fatalf("the undisturbed run proves nothing:\n%s", want)
	}
	for name, disturb := range map[string]func(*testing.T, *disturbed, string){
		"terminal closed": terminalCloses, "pipe closed": pipeCloses, "disk full": diskFills,
		"parent renamed": parentRenamed, "directory replaced": directoryReplaced, "directory removed": directoryRemoved,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disturb(t, newDisturbed(t, flags), want)
		})
	}
}

func terminalCloses(t *testing.T, d *disturbed, want string) {
	opened, terminal, err := pty.Open()
	need.That(t, "pty", err == nil, fmt.Sprintf("needs a pseudo-terminal: %v", err))
	fd, err := unix.FcntlInt(opened.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err := errors.Join(err, unix.SetNonblock(fd, true), opened.Close()); err != nil {
		t.Fatal(err)
	}
	controller := os.NewFile(uintptr(fd), "controller") // which can be closed while it is read
	r := d.start(t, "jobs", terminal, func(r *running) {
		r.cmd.Stdin = terminal
		r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		go func() { _, _ = io.Copy(io.Discard, controller) }()
	})
	_, _ = terminal.Close(), controller.Close() // the kernel hangs up
	r.ends(t, exitInterrupted)
	d.resumesTo(t, "jobs/j", want)
}

func pipeCloses(t *testing.T, d *disturbed, want string) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := d.start(t, "jobs", writer, nil)
	_, _ = writer.Close(), reader.Close()
	d.held.Store(false)
	<-r.ended
	if state := r.cmd.ProcessState; !state.Exited() {
		t.Errorf("it was ended: %v", state)
	}
	if got := numbers(t, r.job); got != want {
		t.Errorf("the job came to\n%s\nundisturbed it comes to\n%s", got, want)
	}
}

// toFile is a file that keeps what a run says.
func (d *disturbed) toFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(d.dir, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func diskFills(t *testing.T, d *disturbed, want string) {
	need.Root(t)
	disk := filepath.Join(d.dir, "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		need.That(t, "mount", false, "needs to mount file systems: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	r := d.start(t, "disk", d.toFile(t), nil)
	// There is room for a result, and none for what the agent writes: it fails, and cleans
	// up behind itself.
	filler := filepath.Join(disk, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(f, bytes.NewReader(make([]byte, 4<<20)))
	if err == nil {
		t.Fatal("the disk is not full")
	}
	if err := errors.Join(f.Truncate(n-48<<10), f.Close()); err != nil {
		t.Fatal(err)
	}
	d.held.Store(false)
	r.ends(t, exitFailed, "no space left on device", "to resume it: cd "+d.dir+" && proctor job resume "+filepath.Join(disk, "j"))
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	d.resumesTo(t, "disk/j", want)
}

func parentRenamed(t *testing.T, d *disturbed, want string) {
	r := d.start(t, "jobs", d.toFile(t), nil)
	moved := filepath.Join(d.dir, "moved jobs")
	if err := os.Rename(filepath.Join(d.dir, "jobs"), moved); err != nil {
		t.Fatal(err)
	}
	r.ends(t, exitFailed, fmt.Sprintf("job directory %q was moved to %q", r.job, filepath.Join(moved, "j")),
		fmt.Sprintf("to resume it: cd %s && proctor job resume '%s'", d.dir, filepath.Join(moved, "j")))
	if _, err := os.Stat(filepath.Join(d.dir, "jobs")); err == nil {
		t.Error("the old directory was made again")
	}
	d.resumesTo(t, "moved jobs/j", want)
}

func directoryReplaced(t *testing.T, d *disturbed, want string) {
	r := d.start(t, "jobs", d.toFile(t), nil)
	if err := os.Rename(r.job, filepath.Join(d.dir, "jobs", "old")); err != nil {
		t.Fatal(err)
	}
	const other = "of somebody else"
	writeFiles(t, r.job, map[string]string{"result.json": other, "proctor.lock": other})
	r.ends(t, exitFailed, "was moved to")
	entries, err := os.ReadDir(r.job)
	if err != nil || len(entries) != 2 {
		t.Errorf("somebody else's directory holds %v, %v", entries, err)
	}
	for _, name := range []string{"result.json", "proctor.lock"} {
		if text, err := os.ReadFile(filepath.Join(r.job, name)); err != nil || string(text) != other {
			t.Errorf("%s of somebody else: %q, %v", name, text, err)
		}
	}
	if err := os.RemoveAll(r.job); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(d.dir, "jobs", "old"), r.job); err != nil { // where the gates are opened
		t.Fatal(err)
	}
	d.resumesTo(t, "jobs/j", want)
}

func directoryRemoved(t *testing.T, d *disturbed, _ string) {
	r := d.start(t, "jobs", d.toFile(t), nil)
	if err := os.RemoveAll(filepath.Join(d.dir, "jobs")); err != nil {
		t.Fatal(err)
	}
	r.ends(t, exitFailed, fmt.Sprintf("job directory %q was removed while the job ran", r.job))
	if strings.Contains(r.said(), "resume") {
		t.Errorf("it says how to resume what is gone:\n%s", r.said())
	}
	if _, err := os.Stat(filepath.Join(d.dir, "jobs")); err == nil {
		t.Error("the directory was made again")
	}
	if left := d.sandboxes(t); len(left) > 0 {
		t.Errorf("directories of sandboxes are left: %q", left)
	}
}

// TestNobodyReads: no command that runs something is ended by output that nobody reads.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	e := environments()[1]
	flags := e.flags(t)
	for name, c := range map[string]struct {
		args []string
		ends string // pattern of the files that are there when it has run to its end
	}{
		"run":           {[]string{"run", "-p", "task", "-a", "oracle", "--job-name", "j"}, "jobs/j/*/result.json"},
		"run json":      {[]string{"run", "-p", "task", "-a", "oracle", "--job-name", "j", "--json"}, "jobs/j/*/result.json"},
		"job start":     {[]string{"job", "start", "-p", "task", "-a", "oracle", "--job-name", "j"}, "jobs/j/*/result.json"},
		"trial start":   {[]string{"trial", "start", "-p", "task", "-a", "oracle", "--trial-name", "j"}, "trials/j/result.json"},
		"cube run":      {[]string{"cube", "run", "task", "-a", "oracle", "--job-name", "j"}, "jobs/j/*/result.json"},
		"ownrunner run": {[]string{"ownrunner", "run", "--task", "task", "--job-dir", "j", "-a", "oracle", "--hardened=false"}, "j/trials/*"},
		"task check":    {[]string{"task", "check", "task", "-o", "checked"}, "checked/*/*/result.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			writeFiles(t, filepath.Join(p.dir, "task"), map[string]string{
				"task.toml": "", "instruction.md": "Do it.\n", "environment/Dockerfile": "FROM debian:bookworm-slim\n",
				"solution/solve.sh": "echo done > /logs/agent/work\n", "tests/test.sh": "cat /logs/agent/work && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n",
			})
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = writer.Close() }()
			_ = reader.Close()
			cmd := p.command(append(c.args, flags...)...)
			cmd.Stdout, cmd.Stderr = writer, writer
			_ = cmd.Run()
			if !cmd.ProcessState.Exited() {
				t.Errorf("it was ended: %v", cmd.ProcessState)
			}
			if files, err := filepath.Glob(filepath.Join(p.dir, filepath.FromSlash(c.ends))); err != nil || len(files) == 0 {
				t.Errorf("it did not run to its end: there is no %s", c.ends)
			}
		})
	}
}
