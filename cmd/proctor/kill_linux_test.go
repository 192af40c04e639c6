package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/jobdir/scan"
)

// phase is where a trial of the task below stands still, to be killed there.
type phase struct {
	name string
	// files replace those of the task.
	files map[string]string
	// args choose an agent that does not end, if need be.
	args []string
	// sign is the file below the trial's directory that tells that the phase
	// is reached; empty means that the sandbox is being made.
	sign string
}

// standStill is a command that leaves a sign and a process of another session,
// and does not end. Its processes do not mind being asked to.
func standStill(dir string) string {
	return "trap '' TERM HUP; setsid sleep 86400 > /dev/null 2>&1 & touch /logs/" + dir + "/here; while :; do sleep 86400; done"
}

func phases() []phase {
	return []phase{
		{name: "sandbox"},
		{
			name: "environment", sign: "artifacts/here",
			files: map[string]string{"task.toml": fmt.Sprintf("[environment.healthcheck]\ncommand = %q\ntimeout_sec = 86400.0\n", standStill("artifacts"))},
		},
		{
			name: "agent setup", sign: "agent/here",
			args: []string{"-a", "command", "--ak", "run=exit 0", "--ak", "install=" + standStill("agent"), "--agent-setup-timeout-multiplier", "100"},
		},
		{name: "agent", sign: "agent/here", args: []string{"-a", "command", "--ak", "run=" + standStill("agent")}},
		{name: "verifier", sign: "verifier/here", files: map[string]string{"tests/test.sh": standStill("verifier")}},
	}
}

// start runs the phase's task until it stands still.
func (ph phase) start(t *testing.T, p place, flags []string) *running {
	t.Helper()
	return ph.startAs(t, p, flags, filepath.Join(p.dir, "jobs", "j"), "run", "-p", "tasks", "-n", "1", "--job-name", "j", "--json")
}

// startAs is start for a command whose job has this directory.
func (ph phase) startAs(t *testing.T, p place, flags []string, job string, command ...string) *running {
	t.Helper()
	files := map[string]string{
		"task.toml": "", "instruction.md": "Stand still.\n",
		"environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n",
		"solution/solve.sh":      "true\n", "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
	}
	for name, text := range ph.files {
		files[name] = text
	}
	// The same task again waits for its turn, which does not come.
	for _, name := range []string{"a-first", "b-second"} {
		writeFiles(t, filepath.Join(p.dir, "tasks", name), files)
	}
	args := slices.Concat(command, flags, ph.args)
	r := &running{cmd: p.command(args...), job: job, ended: make(chan struct{}), engine: slices.Contains(flags, "docker")}
	stderr, err := os.Create(filepath.Join(p.dir, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stderr.Close() }()
	r.stderr = stderr.Name()
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, stderr
	r.begin(t, p)
	r.await(t, p, ph.sign)
	return r
}

// running is a run of proctor that stands still.
type running struct {
	cmd    *exec.Cmd
	job    string
	stdout bytes.Buffer // complete when it has ended
	stderr string       // file
	ended  chan struct{}
	engine bool // it uses a Docker Engine
	trial  string
	ids    []string // of its sandboxes below the state directory
}

// begin starts the program. What a failed test leaves is removed.
func (r *running) begin(t *testing.T, p place) {
	t.Helper()
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait()
		close(r.ended)
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.ended
		finish(t, p.command("gc"))
	})
}

func (r *running) said() string {
	data, err := os.ReadFile(r.stderr)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// await waits until the trial has left its sign, or until there is anything of
// a sandbox.
func (r *running) await(t *testing.T, p place, sign string) {
	t.Helper()
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-r.ended:
			t.Fatalf("it ended before it was killed:\n%s\n%s", r.stdout.String(), r.said())
		}
		trials, _ := filepath.Glob(filepath.Join(r.job, "a-first__*")) // the pattern is correct
		if len(trials) == 0 {
			continue
		}
		r.trial = filepath.Base(trials[0])
		r.ids = p.sandboxes(t)
		if sign == "" && (len(r.ids) > 0 || len(r.containers(t)) > 0) {
			return
		}
		if _, err := os.Stat(filepath.Join(trials[0], filepath.FromSlash(sign))); sign != "" && err == nil {
			return
		}
	}
}

// signalled waits for the end after signals. Each is sent when the one before
// has been answered: signals that wait together count as one.
func (r *running) signalled(t *testing.T, signals ...syscall.Signal) {
	t.Helper()
	for i, s := range signals {
		r.awaitSaid(i, "interrupt again to stop at once")
		if err := r.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
	}
	<-r.ended
}

// awaitSaid waits until something was said n times, or the run has ended.
func (r *running) awaitSaid(n int, text string) {
	for tick := time.NewTicker(time.Millisecond); strings.Count(r.said(), text) < n; {
		select {
		case <-tick.C:
		case <-r.ended:
			return
		}
	}
}

// sandboxes lists the sandboxes below the state directory.
func (p place) sandboxes(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(p.state, "sandboxes", "sandboxes", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, dir := range dirs {
		dirs[i] = filepath.Base(dir)
	}
	return dirs
}

// containers lists the containers and networks of the trial.
func (r *running) containers(t testing.TB) []string {
	t.Helper()
	if !r.engine {
		return nil
	}
	api, err := client.New(client.WithHost(need.Docker(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = api.Close() }()
	ours := make(client.Filters).Add("label", "proctor.trial="+r.trial)
	var found []string
	list, err := api.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		found = append(found, "container "+c.ID)
	}
	networks, err := api.NetworkList(t.Context(), client.NetworkListOptions{Filters: ours})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range networks.Items {
		found = append(found, "network "+n.Name)
	}
	return found
}

// assertNothingLeft looks for what a run may have left outside of its job
// directory.
func (r *running) assertNothingLeft(t *testing.T, p place) {
	t.Helper()
	if found := r.containers(t); len(found) > 0 {
		t.Errorf("left: %q", found)
	}
	if found := p.sandboxes(t); len(found) > 0 {
		t.Errorf("directories of sandboxes are left: %q", found)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(mounts, []byte(p.state)) {
		t.Errorf("mounts below %s are left (%v):\n%s", p.state, err, mounts)
	}
	for _, id := range append(r.ids, p.state, r.trial) {
		if found := processesNaming(t, id); len(found) > 0 {
			t.Errorf("processes are left: %q", found)
		}
	}
	for _, id := range r.ids {
		for _, pattern := range []string{"/sys/fs/cgroup/*/" + id, "/sys/fs/cgroup/*/*/" + id, "/run/runsc-" + id + "*", "/tmp/runsc-" + id + "*"} {
			if found, _ := filepath.Glob(pattern); len(found) > 0 { // the patterns are correct
				t.Errorf("left: %q", found)
			}
		}
	}
}

// processesNaming lists living processes that have a text in their command
// line, their mounts or their groups.
func processesNaming(t testing.TB, text string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		dir := filepath.Join("/proc", e.Name())
		cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || len(cmdline) == 0 || e.Name() == fmt.Sprint(os.Getpid()) || e.Name() == "self" || e.Name() == "thread-self" {
			continue // no process, or one that has ended
		}
		for _, name := range []string{"cmdline", "mountinfo", "cgroup"} {
			if data, _ := readAtMost(filepath.Join(dir, name), 1<<20); bytes.Contains(data, []byte(text)) {
				found = append(found, fmt.Sprintf("%s %q (%s)", e.Name(), cmdline, name))
				break
			}
		}
	}
	return found
}

func readAtMost(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, n))
}

// killEnvironments are those whose sandboxes differ in how they die.
func killEnvironments() []environment {
	return slices.DeleteFunc(environments(), func(e environment) bool { return e.image })
}

// shared reports whether other tests use the same engine: their commands too
// remove what a killed proctor has left, and may be quicker.
func (e environment) shared() bool { return e.name == "docker" }

// TestKilled kills proctor in each phase of a trial; gc then leaves nothing of
// the sandbox.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, where := range killEnvironments() {
		for _, ph := range phases() {
			t.Run(where.name+"/"+ph.name, func(t *testing.T) {
				t.Parallel()
				flags := where.flags(t)
				p := newPlace(t)
				r := ph.start(t, p, flags)
				r.signalled(t, syscall.SIGKILL)
				r.ids = append(r.ids, p.sandboxes(t)...)
				p.ageRecords(t)
				gc := p.run(t, "gc")
				if gc.code != exitOK || !strings.Contains(gc.stdout, r.trial) && ph.sign != "" && !where.shared() {
					t.Errorf("gc: exit code %d, and it says %s%s", gc.code, gc.stdout, gc.stderr)
				}
				if where.shared() && ph.name == "sandbox" {
					p.collectUntilQuiet(t, r.trial)
				}
				r.assertNothingLeft(t, p)
				if again := p.run(t, "gc"); again.code != exitOK || strings.Contains(again.stdout, r.trial) {
					t.Errorf("gc once more: exit code %d, and it says %s%s", again.code, again.stdout, again.stderr)
				}
			})
		}
	}
}

// collectUntilQuiet collects until nothing of a trial has come for two seconds: a
// container engine carries out what a proctor asked for that was killed before
// it was answered, also after the first look.
func (p place) collectUntilQuiet(t *testing.T, trial string) {
	t.Helper()
	const pause, quiet, most = 250 * time.Millisecond, 8, 120
	for calm, tries := 0, 0; calm < quiet && tries < most; tries++ {
		time.Sleep(pause)
		calm++
		if strings.Contains(p.run(t, "gc").stdout, trial) {
			calm = 0
		}
	}
}

// TestGCSparesTheLiving: gc of another process leaves the sandbox of a proctor
// that is running alone, and removes it when that proctor is gone. A dry run
// says so and removes nothing.
func TestGCSparesTheLiving(t *testing.T) {
	t.Parallel()
	agent := phases()[3]
	for _, where := range killEnvironments() {
		t.Run(where.name, func(t *testing.T) {
			t.Parallel()
			flags := where.flags(t)
			p := newPlace(t)
			r := agent.start(t, p, flags)
			left := func() int { return len(p.sandboxes(t)) + len(r.containers(t)) }
			before := left()
			for range 2 {
				if gc := p.run(t, "gc"); gc.code != exitOK || strings.Contains(gc.stdout, r.trial) || left() != before {
					t.Fatalf("gc beside a running proctor: exit code %d, %d of %d left, and it says %s%s", gc.code, left(), before, gc.stdout, gc.stderr)
				}
			}
			// Nor does anybody else write to its job.
			for _, args := range [][]string{{"job", "resume", "-p", "jobs/j"}, {"score", "--write", "jobs/j"}} {
				if busy := p.run(t, args...); busy.code != exitUsage || !strings.Contains(busy.stderr, fmt.Sprintf("is in use: proctor with pid %d on host", r.cmd.Process.Pid)) {
					t.Errorf("%q beside a running proctor: exit code %d, and it says %s", args, busy.code, busy.stderr)
				}
			}
			show := p.run(t, "job", "show", "jobs/j")
			if says := show.stdout; !strings.Contains(says, "\nrunning, started ") || !strings.Contains(says, ": in use\n") || strings.Contains(says, "To resume it") ||
				strings.Contains(says, "may be left") || strings.Contains(says, "never") {
				t.Errorf("job show of a running job says\n%s", says)
			}
			if list := p.run(t, "job", "list"); !strings.Contains(list.stdout, "│ running │") {
				t.Errorf("job list of a running job says\n%s", list.stdout)
			}
			// An agent that was ended would end its trial.
			if ended, _ := filepath.Glob(filepath.Join(r.job, "*", scan.ResultFile)); len(ended) > 0 {
				t.Errorf("ended: %q", ended)
			}
			r.signalled(t, syscall.SIGKILL)
			resume := fmt.Sprintf("cd %s && proctor job resume %s", p.dir, r.job)
			for _, args := range [][]string{{"job", "show", "jobs/j"}, {"job", "list"}, {"job", "summarize", "jobs/j"}} {
				if left := p.run(t, args...); !strings.Contains(left.stdout, "unfinished") || !strings.Contains(left.stdout, resume) {
					t.Errorf("%q of a killed job says\n%s", args, left.stdout)
				}
			}
			dry := p.run(t, "gc", "--dry-run")
			told := strings.Contains(dry.stdout, "would remove ") && strings.Contains(dry.stdout, r.trial) && left() == before
			if dry.code != exitOK || !told && (!where.shared() || left() != 0) {
				t.Errorf("a dry run: exit code %d, %d of %d left, and it says %s%s", dry.code, left(), before, dry.stdout, dry.stderr)
			}
			if gc := p.run(t, "gc"); gc.code != exitOK || !strings.Contains(gc.stdout, r.trial) && !where.shared() {
				t.Errorf("gc behind a killed proctor: exit code %d, and it says %s%s", gc.code, gc.stdout, gc.stderr)
			}
			r.assertNothingLeft(t, p)
		})
	}
}

// ageRecords lets directories without a readable record count as left behind:
// their maker may be killed just before it writes the record.
func (p place) ageRecords(t testing.TB) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	for _, id := range p.sandboxes(t) {
		if err := os.Chtimes(filepath.Join(p.state, "sandboxes", "sandboxes", id), old, old); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInterrupted interrupts a run in each phase, once and twice: what was done
// is recorded, and nothing of a sandbox is left without any gc.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	signals := map[string][]syscall.Signal{
		"once":       {syscall.SIGINT},
		"terminated": {syscall.SIGTERM},
		"hung up":    {syscall.SIGHUP},
		"twice":      {syscall.SIGINT, syscall.SIGINT},
	}
	for _, where := range killEnvironments() {
		for _, ph := range phases() {
			for how, list := range signals {
				if (how == "terminated" || how == "hung up") && ph.name != "agent" {
					continue // it goes the same way
				}
				t.Run(where.name+"/"+ph.name+"/"+how, func(t *testing.T) {
					t.Parallel()
					where.oneIsEnough(t)
					flags := where.flags(t)
					p := newPlace(t)
					r := ph.start(t, p, flags)
					r.signalled(t, list...)
					r.ids = append(r.ids, p.sandboxes(t)...)
					if code := r.cmd.ProcessState.ExitCode(); code != exitInterrupted {
						t.Errorf("exit code %d, want %d:\n%s\n%s", code, exitInterrupted, r.stdout.String(), r.said())
					}
					r.assertNothingLeft(t, p)
					assertCancelled(t, r)
				})
			}
		}
	}
}

// assertCancelled reads the files of an interrupted job: the running trial is
// recorded as cancelled, the waiting one is not, and the job has no end (Harbor
// job format, section 4).
func assertCancelled(t *testing.T, r *running) {
	t.Helper()
	scanned, err := scan.Dir(t.Context(), r.job)
	if err != nil || len(scanned.Errors)+len(scanned.Unfinished) > 0 || len(scanned.Records) != 1 {
		t.Fatalf("trials %+v, error %v", scanned, err)
	}
	if got := scanned.Records[0]; got.TrialName != r.trial || got.ExceptionType != "CancelledError" || got.Rewards != nil {
		t.Errorf("trial %s has exception %q and rewards %v, want %s and CancelledError", got.TrialName, got.ExceptionType, got.Rewards, r.trial)
	}
	result := jobResult(t, r.job)
	s := result.Stats
	if result.FinishedAt != nil || s.NCancelledTrials != 1 || s.NErroredTrials != 1 || s.NPendingTrials != 1 || s.NRunningTrials != 0 {
		t.Errorf("finished at %v, %d cancelled, %d errored, %d pending, %d running; want no end, 1, 1, 1 and 0",
			result.FinishedAt, s.NCancelledTrials, s.NErroredTrials, s.NPendingTrials, s.NRunningTrials)
	}
	lines := strings.Split(strings.TrimSpace(r.stdout.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"type":"job_end"`) {
		t.Errorf("the last event is %s", last)
	}
}

// TestInterruptedQuestion interrupts the question that a run asks on a
// terminal.
func TestInterruptedQuestion(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	writeFiles(t, filepath.Join(p.dir, "task"), map[string]string{
		"task.toml": "[environment.env]\nHOME_OF_MINE = \"${HOME}\"\n", "instruction.md": "",
		"environment/Dockerfile": "FROM debian:bookworm-slim\n", "tests/test.sh": "",
	})
	controller, terminal, err := pty.Open()
	need.That(t, "pty", err == nil, fmt.Sprintf("needs a pseudo-terminal: %v", err))
	defer func() { _ = controller.Close() }()
	defer func() { _ = terminal.Close() }()
	r := &running{cmd: p.command("run", "-p", "task", "-a", "nop", "-e", "docker"), stderr: filepath.Join(p.dir, "stderr"), ended: make(chan struct{})}
	stderr, err := os.Create(r.stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stderr.Close() }()
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = terminal, &r.stdout, stderr
	r.cmd.Env = append(r.cmd.Env, "HOME="+p.dir)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait()
		close(r.ended)
	}()
	r.awaitSaid(1, "Proceed? (Y/n): ")
	r.signalled(t, syscall.SIGINT)
	if code := r.cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(r.said(), "\nproctor: interrupted; nothing was run\n") {
		t.Errorf("exit code %d, want %d, and it says %s", code, exitInterrupted, r.said())
	}
	if _, err := os.Stat(filepath.Join(p.dir, "jobs")); err == nil {
		t.Error("there is a jobs directory")
	}
}
