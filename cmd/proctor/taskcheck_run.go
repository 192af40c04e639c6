package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/proctor-run/proctor/internal/interrupt"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/job/taskcheck"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
)

// checker runs the trials of the checks, one job for each batch.
type checker struct {
	env     *Env
	flags   *checkFlags
	cfg     jobdir.Config // what all jobs have in common
	prefix  string        // of the jobs' names
	backend sandbox.Backend
	// fromFile names the variables that the user meant for the tasks.
	fromFile map[string]bool
	asked    bool
}

func checkTasks(ctx context.Context, env *Env, f *checkFlags, dirs []string) error {
	interrupt.SurviveClosedPipes()
	tasks := make([]*taskcheck.Subject, len(dirs))
	for i, dir := range dirs {
		tasks[i] = taskcheck.Examine(dir)
	}
	kept, err := checkRuns(ctx, env, f, tasks)
	if err != nil {
		return err
	}
	if err := printChecked(env.Stdout, f, tasks, kept); err != nil {
		return err
	}
	if kept != "" {
		f.say(env, "the trials are in %s; 'proctor trial show' shows one", kept)
	}
	if f.failed(tasks) {
		return errQuiet(exitThreshold)
	}
	return nil
}

// checkRuns runs the checks of the tasks that can be run. It returns where the
// trials are, if they are kept.
func checkRuns(ctx context.Context, env *Env, f *checkFlags, tasks []*taskcheck.Subject) (kept string, err error) {
	running := runnable(tasks)
	if len(running) == 0 {
		return "", nil
	}
	kept, remove, err := f.place(env)
	if err != nil {
		return "", err
	}
	err = runChecks(ctx, env, f, running, kept)
	// Declined, or refused before anything was run.
	nothing := err != nil && (exitCode(err) == exitOK || exitCode(err) == exitUsage)
	if nothing || err == nil && !f.failed(tasks) && !f.keep {
		kept = remove()
	}
	if err != nil && kept != "" {
		f.say(env, "the trials are in %s", kept)
	}
	return kept, err
}

func runnable(tasks []*taskcheck.Subject) []*taskcheck.Subject {
	return slices.DeleteFunc(slices.Clone(tasks), func(t *taskcheck.Subject) bool { return !t.Runs })
}

// failed reports whether the exit code has to say so.
func (f *checkFlags) failed(tasks []*taskcheck.Subject) bool {
	return slices.ContainsFunc(tasks, func(t *taskcheck.Subject) bool {
		return !t.Report.Passed || f.strict && t.Report.Worst() == taskcheck.Warn
	})
}

// place is where the jobs go. remove tries to remove what is temporary, and
// returns what is left.
func (f *checkFlags) place(env *Env) (dir string, remove func() string, err error) {
	if f.out != "" {
		return f.out, func() string { return f.out }, nil
	}
	dir, err = os.MkdirTemp("", "proctor-check-")
	if err != nil {
		return "", nil, fmt.Errorf("making a place for the trials: %w", err)
	}
	return dir, func() string {
		unlock(dir)
		if err := os.RemoveAll(dir); err != nil {
			_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: removing the trials: %v\n", err)
			return dir
		}
		return ""
	}, nil
}

// unlock lets the directories of a tree be emptied again: an attempt on the
// reward takes everybody's right to write.
func unlock(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
}

// runChecks runs the trials of all tasks and judges them.
func runChecks(ctx context.Context, env *Env, f *checkFlags, tasks []*taskcheck.Subject, place string) (err error) {
	c := &checker{env: env, flags: f, prefix: jobdir.DefaultName(env.Now().Local()) + "-"}
	if c.fromFile, err = loadEnvFile(env, f.run.EnvFile); err != nil {
		return err
	}
	cfg, names, err := program(env).Configure(f.run)
	if err != nil {
		return err
	}
	env.hide(f.run.Secrets, env.source(f.run.Secrets).OfJob(cfg))
	if c.cfg.JobsDir, err = filepath.Abs(place); err != nil {
		return err
	}
	cfg.JobsDir = c.cfg.JobsDir
	for _, t := range tasks {
		cfg.Tasks = append(cfg.Tasks, jobdir.TaskConfig{Path: &t.Dir})
	}
	var opts backendOptions
	shown := *f.run
	shown.JSON = f.json
	if cfg.Environment, opts, err = chooseEnvironment(ctx, env, cfg.Environment, &shown, names.Environment); err != nil {
		return err
	}
	c.cfg, opts.Mask = cfg, job.Hidden(cfg, env.Getenv("HOME"))
	backend, closeBackend, err := readyBackend(ctx, env, opts)
	if err != nil {
		return err
	}
	c.backend = backend
	course := taskcheck.Course{
		Repeats: f.repeats, Sealed: f.run.Sealed, Environment: backend.Name(), Can: backend.Capabilities(), Run: c.run,
		Say: func(tasks int, text string) { f.say(env, "%s: %s", count(tasks, "task"), text) },
	}
	return errors.Join(course.Check(ctx, tasks), closeBackend())
}

// run runs a batch as a job.
func (c *checker) run(ctx context.Context, b taskcheck.Batch) (_ [][]taskcheck.Trial, err error) {
	cfg := c.cfg
	cfg.JobName, cfg.NAttempts, cfg.Agents, cfg.Tasks = c.prefix+b.Name, 1, taskcheck.Agents(b.Roles), nil
	for _, t := range b.Tasks {
		cfg.Tasks = append(cfg.Tasks, jobdir.TaskConfig{Path: &t.Dir})
	}
	s := newSession(ctx, c.env, c.flags.run, &backendOptions{})
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	s.Backend = func(context.Context, []string) (sandbox.Backend, func() error, error) {
		return c.backend, func() error { return nil }, nil
	}
	prepared, err := s.Prepare(cfg)
	if err != nil {
		return nil, jobcli.PrepareError(err)
	}
	prepared.Warnings = nil // they are about files, and said
	if !c.asked {
		if err := confirmVariables(ctx, c.env, prepared, c.fromFile, c.flags.run.Yes); err != nil {
			return nil, err
		}
		c.asked = true
	}
	results := map[string]*jobdir.TrialResult{}
	s.Runner.Trials.Amend = b.Amend
	s.Runner.Emit = func(e job.Event) {
		if e.Trial != nil && e.Trial.Result != nil {
			results[e.Trial.TrialName] = e.Trial.Result
		}
	}
	out, err := program(c.env).Watch(ctx, c.flags.run, s, prepared)
	if err != nil {
		return nil, err
	}
	if out.Interrupted {
		return nil, errQuiet(exitInterrupted)
	}
	return taskcheck.GatherAll(cfg.Dir(), prepared.Trials, b.Roles, results)
}
