package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/proctor-run/proctor/audit"
	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/value"
)

// The kill matrix: proctor is killed with SIGKILL at every boundary of a
// trial's life, in every environment, with one trial at a time and with eight;
// then the job is resumed.
//
// The first two tasks never stand still, so that something has ended by the
// time of the kill: one has a reward, the other an exception.
var (
	quickTasks = []string{"a-solved", "b-broken"}
	slowTasks  = []string{"c", "d", "e", "f", "g", "h"}
)

// boundary is where a run is killed.
type boundary struct {
	name string
	// hold names the commands that stand still; none for what is killed as it
	// passes.
	hold string
	// reached tells that it is time.
	reached func(c *cell) bool
}

func boundaries() []boundary {
	held := func(name string) boundary {
		return boundary{name, name, func(c *cell) bool { return c.quickDone() && len(c.marks("at", name)) > 0 }}
	}
	return []boundary{
		{"trial begun", "", func(c *cell) bool { return c.journalled(journal.TrialStarted) > c.quickBefore() }},
		{"sandbox made", "", func(c *cell) bool { return c.journalled(journal.SandboxCreated) > c.quickBefore() }},
		held("environment"), held("setup"), held("agent"), held("verifier"),
		{"teardown", "", func(c *cell) bool { return len(c.marks("at", "verified")) > 0 }},
		{"result written", "", func(c *cell) bool { return c.journalled(journal.TrialFinished) > c.quickBefore() }},
		{"last result", "", func(c *cell) bool { return len(c.results()) == len(c.tasks) }},
		{"job finished", "", func(c *cell) bool { return c.journalled(journal.JobFinished) > 0 }},
	}
}

// step is what the command of a phase does: it counts itself, and stands still
// for as long as it is told to. What it leaves running does not mind being
// asked to end.
func step(task, phase string) string {
	count := fmt.Sprintf("mktemp -p /matrix/runs %s.%s.XXXXXXXX > /dev/null\n", phase, task)
	if slices.Contains(quickTasks, task) {
		return count
	}
	return count + fmt.Sprintf("if [ -e /matrix/hold/%[1]s ]; then trap '' TERM HUP; setsid sleep 86400 > /dev/null 2>&1 & : > /matrix/at/%[1]s.%[2]s; while :; do sleep 86400; done; fi\n", phase, task)
}

// cell is one run that is killed and resumed.
type cell struct {
	t     *testing.T
	p     place
	flags []string
	tasks []string
	n     int
	job   string
}

func newCell(t *testing.T, where environment, n int) *cell {
	t.Helper()
	c := &cell{t: t, p: newPlace(t), n: n}
	c.tasks, c.job = slices.Concat(quickTasks, slowTasks), filepath.Join(c.p.dir, "jobs", "j")
	if n == 1 {
		c.tasks = c.tasks[:3]
	}
	for _, dir := range []string{"runs", "at", "hold"} {
		if err := os.MkdirAll(filepath.Join(c.p.dir, "matrix", dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, task := range c.tasks {
		// What no file says the install command finds in the sandbox.
		healthy := "echo " + task + " > /tmp/task\n" + step(task, "environment")
		verdict := fmt.Sprintf("echo 0.%d > /logs/verifier/reward.txt\n: > /matrix/at/verified.%s\n", len(task), task)
		switch task {
		case "a-solved":
			verdict = "echo 1 > /logs/verifier/reward.txt\n"
		case "b-broken":
			verdict = ""
		}
		writeFiles(t, filepath.Join(c.p.dir, "tasks", task), map[string]string{
			"task.toml":      fmt.Sprintf("[environment]\ndocker_image = \"debian:bookworm-slim\"\n[environment.healthcheck]\ncommand = %q\ntimeout_sec = 86400.0\n", healthy),
			"instruction.md": task, "environment/Dockerfile": "FROM debian:bookworm-slim\n",
			"tests/test.sh": step(task, "verifier") + verdict,
		})
	}
	install := "case $(cat /tmp/task) in\n"
	run := "case $(cat /tmp/task) in\n"
	for _, task := range c.tasks {
		install += task + ")\n" + step(task, "setup") + ";;\n"
		run += task + ")\n" + step(task, "agent") + ";;\n"
	}
	c.flags = slices.Concat([]string{
		"run", "-p", "tasks", "-a", "command", "--ak", "install=" + install + "esac", "--ak", "run=" + run + "esac",
		"--agent-setup-timeout-multiplier", "1000", "-n", fmt.Sprint(n), "--job-name", "j", "-q",
		"--mounts", fmt.Sprintf(`[{"type":"bind","source":%q,"target":"/matrix"}]`, filepath.Join(c.p.dir, "matrix")),
	}, where.flags(t))
	return c
}

// marks lists the files that the commands have left.
func (c *cell) marks(dir, phase string) []string {
	found, _ := filepath.Glob(filepath.Join(c.p.dir, "matrix", dir, phase+".*")) // the pattern is correct
	return found
}

// results are the trials that have a result, by task.
func (c *cell) results() map[string]string {
	found, _ := filepath.Glob(filepath.Join(c.job, "*", scan.ResultFile)) // the pattern is correct
	byTask := map[string]string{}
	for _, path := range found {
		task, _, _ := strings.Cut(filepath.Base(filepath.Dir(path)), "__")
		byTask[task] = path
	}
	return byTask
}

// quickDone tells that the tasks have ended that never stand still.
func (c *cell) quickDone() bool {
	results := c.results()
	return results[quickTasks[0]] != "" && results[quickTasks[1]] != ""
}

// quickBefore is how many trials come before the first that is to be killed.
func (c *cell) quickBefore() int {
	if c.n == 1 {
		return len(quickTasks)
	}
	return 0
}

func (c *cell) journalled(kind journal.Kind) int {
	data, _ := os.ReadFile(filepath.Join(c.job, journal.File))
	return bytes.Count(data, []byte(`"event":"`+string(kind)+`"`))
}

// file is a content and when it was written.
type file struct {
	text    string
	written time.Time
}

func (c *cell) read(path string) file {
	c.t.Helper()
	data, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil {
		c.t.Fatal(err, statErr)
	}
	return file{string(data), info.ModTime()}
}

// kill runs the job and kills proctor at the boundary. It returns the results
// that were there then, by task.
func (c *cell) kill(at boundary) map[string]file {
	c.t.Helper()
	if at.hold != "" {
		writeFiles(c.t, filepath.Join(c.p.dir, "matrix", "hold"), map[string]string{at.hold: ""})
	}
	cmd := c.p.command(c.flags...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for tick := time.NewTicker(2 * time.Millisecond); !at.reached(c); {
		select {
		case <-tick.C:
		case err := <-ended:
			if !at.reached(c) {
				c.t.Fatalf("it ended before it was killed: %v\n%s", err, said.String())
			}
			ended <- err
		}
	}
	_ = cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	<-ended                                 //nolint:errcheck // it was killed
	if at.hold != "" {
		if err := os.Remove(filepath.Join(c.p.dir, "matrix", "hold", at.hold)); err != nil {
			c.t.Fatal(err)
		}
	}
	finished := map[string]file{}
	for task, path := range c.results() {
		finished[task] = c.read(path)
	}
	return finished
}

// final is the result of a job, names and times aside: its own result, and the
// rewards and the exception of every trial.
func (c *cell) final() string {
	c.t.Helper()
	result := jobResult(c.t, c.job)
	if result.FinishedAt == nil {
		c.t.Error("the job has not finished")
	}
	if found, err := audit.Check(c.t.Context(), c.job, audit.Options{}); err != nil || len(found.Findings) > 0 {
		c.t.Errorf("a job that was only killed and resumed: %v, error %v", found.Findings, err)
	}
	result.ID, result.StartedAt, result.UpdatedAt, result.FinishedAt = [16]byte{}, jobdir.Time{}, nil, nil
	doc, err := value.Decode(result.AppendJSON(nil))
	if err != nil {
		c.t.Fatal(err)
	}
	text := trialSuffix.ReplaceAllString(string(value.AppendPydantic(nil, sorted(doc), 2)), `$1"`)
	records := jobRecords(c.t, c.job)
	for _, task := range slices.Sorted(maps.Keys(records)) {
		text += fmt.Sprintf("\n%s: %s", task, outcomeText(records[task]))
	}
	return text
}

var trialSuffix = regexp.MustCompile(`("[a-z-]+)__[0-9A-Za-z]{7}"`)

// sorted puts the lists of a document in order: trials that were kept come
// before those that ran again.
func sorted(v value.Value) value.Value {
	switch v := v.(type) {
	case *value.Object:
		out := value.NewObject(v.Len())
		for _, key := range slices.Sorted(v.Keys()) {
			item, _ := v.Get(key)
			out.Set(key, sorted(item))
		}
		return out
	case value.List:
		out := make(value.List, len(v))
		for i, item := range v {
			out[i] = sorted(item)
		}
		slices.SortFunc(out, func(a, b value.Value) int { return strings.Compare(value.Repr(a), value.Repr(b)) })
		return out
	}
	return v
}

// checkNotTwice: what had ended is as it was, and no command of it ran again.
func (c *cell) checkNotTwice(finished map[string]file) {
	c.t.Helper()
	results := c.results()
	for task, before := range finished {
		if now := c.read(results[task]); now != before {
			c.t.Errorf("the result of %s, which had ended, was written again", task)
		}
		for _, phase := range []string{"environment", "setup", "agent", "verifier"} {
			if ran := len(c.marks("runs", phase+"."+task)); ran != 1 {
				c.t.Errorf("%s of %s, which had ended, ran %d times", phase, task, ran)
			}
		}
	}
	for _, task := range c.tasks {
		for _, phase := range []string{"agent", "verifier"} {
			if ran := len(c.marks("runs", phase+"."+task)); ran < 1 || ran > 2 {
				c.t.Errorf("%s of %s ran %d times", phase, task, ran)
			}
		}
	}
}

// checkNothingLeft looks for what the killed run has left.
func (c *cell) checkNothingLeft(engine bool) {
	c.t.Helper()
	j, err := journal.Load(c.job)
	if err != nil {
		c.t.Fatal(err)
	}
	s := journal.NewState(j)
	if left := s.Outside(); len(left) > 0 || s.Running() != nil {
		c.t.Errorf("the journal ends with %v outside, and %v running", left, s.Running())
	}
	for _, t := range s.Trials {
		r := &running{job: c.job, engine: engine, trial: t.Name}
		for _, a := range t.Attempts {
			for _, b := range a.Sandboxes {
				r.ids = append(r.ids, b.ID)
			}
		}
		r.assertNothingLeft(c.t, c.p)
	}
	if _, err := os.Lstat(filepath.Join(c.job, jobdir.GuardFile)); err == nil {
		c.t.Errorf("%s is left", jobdir.GuardFile)
	}
}

// matrix collects the outcomes of the cells.
type matrix struct {
	mu    sync.Mutex
	cells map[string]string
}

func (m *matrix) set(row, column, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cells[row+"\x00"+column] = text
}

func (m *matrix) table(rows, columns []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-16s", "killed at")
	for _, column := range columns {
		fmt.Fprintf(&b, " %-22s", column)
	}
	for _, row := range rows {
		fmt.Fprintf(&b, "\n%-16s", row)
		for _, column := range columns {
			fmt.Fprintf(&b, " %-22s", m.cells[row+"\x00"+column])
		}
	}
	return b.String()
}

// matrixEnvironments are those that run different code when they are killed.
func matrixEnvironments() []environment {
	return slices.DeleteFunc(environments(), func(e environment) bool { return e.name == "sandbox-gvisor" })
}

// TestKillMatrix: after a kill at any boundary, resuming gives the result of an
// undisturbed run, nothing that had ended runs twice, and nothing is left.
func TestKillMatrix(t *testing.T) { //nolint:tparallel // the group of cells ends before the table is printed
	need.Patience(t)
	t.Parallel()
	m := &matrix{cells: map[string]string{}}
	var columns, rows []string
	for _, at := range boundaries() {
		rows = append(rows, at.name)
	}
	started := time.Now()
	t.Run("cells", func(t *testing.T) {
		for _, where := range matrixEnvironments() {
			for _, n := range []int{1, 8} {
				if where.image && n == 1 {
					continue // what differs from the host's own files is the image alone
				}
				column := fmt.Sprintf("%s n=%d", where.name, n)
				columns = append(columns, column)
				undisturbed := sync.OnceValue(func() string {
					c := newCell(t, where, n)
					if done := c.p.run(t, c.flags...); done.code != exitTrialErrors {
						t.Errorf("undisturbed: exit code %d: %s", done.code, done.stderr)
					}
					return c.final()
				})
				for _, at := range boundaries() {
					t.Run(column+"/"+at.name, func(t *testing.T) {
						t.Parallel()
						where.need(t)
						m.set(at.name, column, "FAILED")
						m.set(at.name, column, runCell(t, where, n, at, undisturbed))
					})
				}
			}
		}
	})
	t.Logf("%s\nkept+again trials, seconds; all cells in %.0f s", m.table(rows, columns), time.Since(started).Seconds())
}

// runCell kills and resumes, and sums up.
func runCell(t *testing.T, where environment, n int, at boundary, undisturbed func() string) string {
	t.Helper()
	need.Root(t)
	started := time.Now()
	c := newCell(t, where, n)
	t.Cleanup(func() {
		if t.Failed() { // what a failed test leaves must not stay
			c.p.ageRecords(t)
			finish(t, c.p.command("gc"))
		}
	})
	finished := c.kill(at)
	c.p.ageRecords(t)
	resumed := c.p.run(t, "job", "resume", "-p", "jobs/j")
	if resumed.code != exitTrialErrors {
		t.Errorf("resume: exit code %d, want %d:\n%s", resumed.code, exitTrialErrors, resumed.stderr)
	}
	if want := fmt.Sprintf("%d of %d kept", len(finished), len(c.tasks)); !strings.Contains(strings.ReplaceAll(strings.ReplaceAll(resumed.stderr, "trials ", ""), "trial ", ""), want) {
		t.Errorf("resume does not say %q:\n%s", want, resumed.stderr)
	}
	if got, want := c.final(), undisturbed(); got != want {
		t.Errorf("the result differs from that of an undisturbed run:\n%s\nwant\n%s", got, want)
	}
	c.checkNotTwice(finished)
	c.checkNothingLeft(where.name == "docker")
	if t.Failed() {
		return "FAILED"
	}
	return fmt.Sprintf("ok %d+%d %.1f", len(finished), len(c.tasks)-len(finished), time.Since(started).Seconds())
}
