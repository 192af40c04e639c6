// Package evaluation keeps what the contract of an independent runner asks of a job
// directory, around a job that runs as any other does: the names of its trials, the lock,
// a record of each trial that consumers read, and the line that says what became of it.
//
// Below the directory of an evaluation lie
//
//	lock.json       what a job must have in common with an earlier one to go on with it
//	trials/<name>/  the record of a trial, and its logs
//	job/            the job itself, as Harbor's readers expect it
//
// The records are made of the job's trials, each when it has ended. One that is there and
// can be read counts, whoever wrote it. (Outcome mapping, section 11.)
package evaluation

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/ownrunner"
	"github.com/proctor-run/proctor/score"
)

// Names in the directory of an evaluation.
const (
	JobName    = "job" // the directory of the job
	trialsDir  = "trials"
	lockFile   = "lock.json"
	recordFile = "result.json"
)

// Task is a task that is evaluated.
type Task struct {
	// Name is what records call it, Dir where it lies, as an absolute path.
	Name, Dir string
}

// Evaluation is an evaluation in its directory. Its exported fields are set before
// anything is called; its methods may be called from several goroutines.
type Evaluation struct {
	Dir   string
	Tasks []Task
	Lock  ownrunner.Lock
	// Policy under which the evaluation is scored beside Harbor's mean; nil for none. One
	// that was fixed before the job ran stays, and no other takes its place.
	Policy *score.Policy
	// Output is the file of the agent's log directory that has what it printed; "" for none.
	Output string
	// Clean takes secrets out of text; nil changes nothing.
	Clean func(string) string

	planned map[string]Task // by the names of trials; Open makes it

	mu      sync.Mutex // guards records
	records map[string]ownrunner.Trial
}

// JobDir is the directory of the job.
func (e *Evaluation) JobDir() string { return filepath.Join(e.Dir, JobName) }

// Plan lists the trials in order.
func (e *Evaluation) Plan() []ownrunner.Planned {
	names := make([]string, len(e.Tasks))
	for i, t := range e.Tasks {
		names[i] = t.Name
	}
	return ownrunner.PlanTrials(names, e.Lock.Attempts)
}

// CollisionError is the error of tasks that cannot be told apart: they lie in one place,
// or their trials would have the same names.
type CollisionError struct{ First, Second Task }

func (e *CollisionError) Error() string {
	if e.First.Dir == e.Second.Dir {
		return fmt.Sprintf("tasks %q and %q are one: %s", e.First.Name, e.Second.Name, e.First.Dir)
	}
	return fmt.Sprintf("the trials of task %q (%s) would have the names of those of task %q (%s)", e.Second.Name, e.Second.Dir, e.First.Name, e.First.Dir)
}

// LockError is the error of a directory that was made with something else.
type LockError struct{ File, Want, Got string }

func (e *LockError) Error() string {
	return fmt.Sprintf("%s says %s, and this run is %s", e.File, e.Want, e.Got)
}

// ErrorType is the name under which the reference raises it.
func (*LockError) ErrorType() string { return "OrchestratorLockError" }

// Open reads what stands in the directory already and checks that this evaluation may go
// on there. It writes nothing.
func (e *Evaluation) Open() error {
	if err := e.checkTasks(); err != nil {
		return err
	}
	if err := e.checkLock(); err != nil {
		return err
	}
	if err := e.checkPolicy(); err != nil {
		return err
	}
	e.planTasks()
	return e.readRecords()
}

// planTasks notes the task of every trial of the plan.
func (e *Evaluation) planTasks() {
	plan := e.Plan()
	tasks := make(map[string]Task, len(e.Tasks))
	for _, t := range e.Tasks {
		tasks[t.Name] = t
	}
	e.planned = make(map[string]Task, len(plan))
	for _, p := range plan {
		e.planned[p.TrialName] = tasks[p.Task]
	}
}

func (e *Evaluation) checkTasks() error {
	first := map[string]Task{}
	for _, t := range e.Tasks {
		for _, key := range []string{ownrunner.TrialName(t.Name, 0), "/" + filepath.Clean(t.Dir)} { // no name has a slash
			if other, taken := first[key]; taken {
				return &CollisionError{other, t}
			}
			first[key] = t
		}
	}
	return nil
}

// maxLock bounds the lock, in bytes.
const maxLock = 1 << 20

// checkLock compares the lock with the one that is there, if anything ran.
func (e *Evaluation) checkLock() error {
	want := e.Lock.JSON()
	got, err := bounded.ReadIn(e.Dir, lockFile, maxLock)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("reading what the job was begun with: %w", err)
	case !bytes.Equal(bytes.TrimSpace(got), want):
		return &LockError{filepath.Join(e.Dir, lockFile), shown(got), shown(want)}
	}
	return nil
}

// checkPolicy takes the policy that was fixed for the job, and refuses another one. Whether
// one may still be fixed, the job decides when it runs.
func (e *Evaluation) checkPolicy() error {
	fixed, err := score.FixedPolicy(e.JobDir())
	if err != nil || fixed == nil {
		return err
	}
	if e.Policy != nil {
		asked := score.Policy{Aggregation: e.Policy.Aggregation, Keep: e.Policy.Keep}
		got, err := outcome.Policy{Aggregation: asked.Aggregation, Keep: asked.Keep}.Text()
		want, _ := fixed.Text() // it was read
		if err != nil || got != want {
			return &LockError{filepath.Join(e.JobDir(), score.PolicyFile), want, cmp.Or(got, "another policy")}
		}
	}
	e.Policy = &score.Policy{Aggregation: fixed.Aggregation, Keep: fixed.Keep, Fixed: true}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// shown is a file's text in an error.
func shown(text []byte) string {
	const most = 400
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return "nothing"
	}
	if len(text) > most {
		return console.Clean(string(text[:most])) + "…"
	}
	return console.Clean(string(text))
}

// Begin makes the directory and writes down what is fixed.
func (e *Evaluation) Begin() error {
	if err := os.MkdirAll(filepath.Join(e.Dir, trialsDir), 0o755); err != nil {
		return fmt.Errorf("making the job directory: %w", err)
	}
	return atomicfile.Write(filepath.Join(e.Dir, lockFile), e.Lock.JSON(), 0o644)
}

// Missing counts the planned trials that have no record.
func (e *Evaluation) Missing() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	missing := 0
	for _, p := range e.Plan() {
		if _, ok := e.records[p.TrialName]; !ok {
			missing++
		}
	}
	return missing
}

// Trials lists the records in the order of the plan, without those that are missing.
func (e *Evaluation) Trials() []ownrunner.Trial {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []ownrunner.Trial
	for _, p := range e.Plan() {
		if t, ok := e.records[p.TrialName]; ok {
			list = append(list, t)
		}
	}
	return list
}
