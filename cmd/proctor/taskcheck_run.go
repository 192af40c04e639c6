package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/job/taskcheck"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
)

// checked is a task under check.
type checked struct {
	dir     string
	report  *taskcheck.Report
	outcome taskcheck.Outcome
	config  harbor.Config
	compose bool // a compose project's network cannot be changed while it runs
	runs    bool // its trials can be run
}

// checker runs the trials of the checks, one job for each kind.
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

func checkTasks(ctx context.Context, env *Env, f *checkFlags, dirs []string) (err error) {
	tasks := make([]*checked, len(dirs))
	for i, dir := range dirs {
		tasks[i] = checkFiles(dir)
	}
	kept := ""
	if running := runnable(tasks); len(running) > 0 {
		place, remove, err := f.place(env)
		if err != nil {
			return err
		}
		kept = place
		err = runChecks(ctx, env, f, running, place)
		// Declined, or refused before anything was run.
		nothing := err != nil && (exitCode(err) == exitOK || exitCode(err) == exitUsage)
		if nothing || err == nil && !f.failed(tasks) && !f.keep {
			kept = remove()
		}
		if err != nil {
			if kept != "" {
				f.say(env, "the trials are in %s", kept)
			}
			return err
		}
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

// checkFiles looks at a task's files before anything is run.
func checkFiles(dir string) *checked {
	t := &checked{dir: dir, report: taskcheck.NewReport(dir)}
	static := validateTask(dir)
	c := taskcheck.Check{Name: taskcheck.CheckFiles, Status: taskcheck.Pass, Message: "nothing wrong"}
	for i, p := range static.Problems {
		if i == 0 || p.Severity == severityError && c.Status != taskcheck.Fail {
			c.Message = p.String()
		}
		if c.Status != taskcheck.Fail {
			c.Status = taskcheck.Warn
		}
		if p.Severity == severityError {
			c.Status = taskcheck.Fail
		}
	}
	if n := len(static.Problems); n > 1 {
		c.Message += fmt.Sprintf(" (and %d more)", n-1)
	}
	if c.Status != taskcheck.Pass {
		c.Fix = "'proctor task validate " + dir + "' names everything"
	}
	t.report.Add(c)
	if !static.Valid {
		return t
	}
	meta, err := harborcube.NewMetadata(dir)
	var task *harbor.Task
	if err == nil {
		task, err = harbor.Load(dir, harbor.LoadOptions{})
	}
	if err != nil { // it was valid a moment ago
		t.report.Add(taskcheck.Check{Name: taskcheck.CheckFiles, Status: taskcheck.Fail, Message: err.Error()})
		return t
	}
	t.outcome.Goal, t.config, t.compose, t.runs = meta.OracleReward, task.Config, task.HasCompose(), true
	return t
}

func runnable(tasks []*checked) []*checked {
	return slices.DeleteFunc(slices.Clone(tasks), func(t *checked) bool { return !t.runs })
}

// failed reports whether the exit code has to say so.
func (f *checkFlags) failed(tasks []*checked) bool {
	return slices.ContainsFunc(tasks, func(t *checked) bool {
		return !t.report.Passed || f.strict && t.report.Worst() == taskcheck.Warn
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
			fmt.Fprintf(env.Stderr, "proctor: warning: removing the trials: %v\n", err)
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
func runChecks(ctx context.Context, env *Env, f *checkFlags, tasks []*checked, place string) (err error) {
	c := &checker{env: env, flags: f, prefix: jobdir.DefaultName(env.Now().Local()) + "-"}
	if c.fromFile, err = loadEnvFile(env, f.run.envFile); err != nil {
		return err
	}
	cfg, names, err := configure(env, f.run)
	if err != nil {
		return err
	}
	if c.cfg.JobsDir, err = filepath.Abs(place); err != nil {
		return err
	}
	cfg.JobsDir = c.cfg.JobsDir
	for _, t := range tasks {
		cfg.Tasks = append(cfg.Tasks, jobdir.TaskConfig{Path: &t.dir})
	}
	name, opts, err := chooseEnvironment(ctx, env, &cfg, f.run.runtime, names.backend)
	if err != nil {
		return err
	}
	c.cfg = cfg
	backend, closeBackend, err := readyBackend(ctx, env, name, opts)
	if err != nil {
		return err
	}
	c.backend = backend
	return errors.Join(c.checkAll(ctx, tasks), closeBackend())
}

func (c *checker) checkAll(ctx context.Context, tasks []*checked) error {
	c.flags.say(c.env, "%s: the solution %s, and no work", count(len(tasks), "task"), times(c.flags.repeats))
	err := c.run(ctx, "reference", tasks, taskcheck.Reference(c.flags.repeats), func(t *checked, trials []taskcheck.Trial) { t.outcome.Reference = trials })
	if err != nil {
		return err
	}
	var usable []*checked
	for _, t := range tasks {
		if taskcheck.JudgeReference(t.report, t.outcome) {
			usable = append(usable, t)
		}
	}
	if err := c.checkNetwork(ctx, usable); err != nil {
		return err
	}
	return c.checkChannel(ctx, usable)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// checkNetwork runs the solutions again, with the network taken away.
func (c *checker) checkNetwork(ctx context.Context, tasks []*checked) error {
	can := c.backend.Capabilities()
	var running []*checked
	for _, t := range tasks {
		config := t.config
		config.Steps = slices.Clone(config.Steps) // taking the network changes them
		t.outcome.Reach = taskcheck.TakeNetwork(&config, can.SwitchNetwork && !t.compose)
		switch {
		case !taskcheck.Solved(t.outcome):
			t.outcome.NoOffline = "not tried: the solution does not get its reward with the network either"
		case t.outcome.Reach == taskcheck.ReachNone:
		case !can.NoNetwork:
			t.outcome.NoOffline = fmt.Sprintf("not tried: environment %s cannot take the network away", c.backend.Name())
		default:
			running = append(running, t)
		}
	}
	if len(running) > 0 {
		c.flags.say(c.env, "%s: the solution without network", count(len(running), "task"))
		c.flags.run.amend = func(_ jobdir.TrialConfig, task *harbor.Task) {
			taskcheck.TakeNetwork(&task.Config, can.SwitchNetwork && !task.HasCompose())
		}
		err := c.run(ctx, "offline", running, taskcheck.Offline(), func(t *checked, trials []taskcheck.Trial) { t.outcome.Offline = &trials[0] })
		c.flags.run.amend = nil
		if err != nil {
			return err
		}
	}
	for _, t := range tasks {
		taskcheck.JudgeNetwork(t.report, t.outcome)
	}
	return nil
}

// checkChannel lets an agent try to write its reward.
func (c *checker) checkChannel(ctx context.Context, tasks []*checked) error {
	if len(tasks) == 0 {
		return nil
	}
	c.flags.say(c.env, "%s: %d attempts on the reward", count(len(tasks), "task"), len(taskcheck.Attempts()))
	err := c.run(ctx, "channel", tasks, taskcheck.Channel(), func(t *checked, trials []taskcheck.Trial) {
		t.outcome.Channel, t.outcome.Sealed = trials, c.flags.run.sealed
	})
	for _, t := range tasks {
		taskcheck.JudgeChannel(t.report, t.outcome)
	}
	return err
}

// run runs one trial of each task for each role, as a job.
func (c *checker) run(ctx context.Context, name string, tasks []*checked, roles []taskcheck.Role, keep func(*checked, []taskcheck.Trial)) error {
	cfg := c.cfg
	cfg.JobName, cfg.NAttempts, cfg.Agents, cfg.Tasks = c.prefix+name, 1, taskcheck.Agents(roles), nil
	for _, t := range tasks {
		cfg.Tasks = append(cfg.Tasks, jobdir.TaskConfig{Path: &t.dir})
	}
	prepared, err := job.Prepare(cfg, prepareOptions(ctx, c.env))
	if err != nil {
		return prepareError(err)
	}
	prepared.Warnings = nil // they are about files, and said
	if !c.asked {
		if err := confirmVariables(ctx, c.env, prepared, c.fromFile, c.flags.run.yes); err != nil {
			return err
		}
		c.asked = true
	}
	results := map[string]*jobdir.TrialResult{}
	c.flags.run.tell = func(e job.Event) {
		if e.Trial != nil && e.Trial.Result != nil {
			results[e.Trial.TrialName] = e.Trial.Result
		}
	}
	out, err := execute(ctx, c.env, c.flags.run, prepared, c.backend)
	if err != nil {
		return err
	}
	if out.Interrupted {
		return errQuiet(exitInterrupted)
	}
	trials := make([]taskcheck.Trial, len(prepared.Trials))
	for i, planned := range prepared.Trials {
		dir := filepath.Join(cfg.Dir(), planned.TrialName)
		if trials[i], err = taskcheck.Gather(dir, roles[i%len(roles)], results[planned.TrialName]); err != nil {
			return err
		}
	}
	for i, t := range tasks {
		keep(t, trials[i*len(roles):(i+1)*len(roles)])
	}
	return nil
}
