package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/evaluation"
	"github.com/proctor-run/proctor/internal/feed"
	"github.com/proctor-run/proctor/internal/guarded"
	"github.com/proctor-run/proctor/internal/interrupt"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/ownrunner"
)

// stderrLimit is how long the end of a run waits for whoever reads standard error.
const stderrLimit = 2 * time.Second

// detached is a stream on which writing takes no time, whoever reads it, unless it is a
// terminal. written waits for what was written.
func detached(stderr io.Writer) (w io.Writer, written func()) {
	if file, ok := stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return stderr, func() {}
	}
	d := console.Detach(stderr)
	return d, func() { d.Close(stderrLimit) }
}

// evaluate runs an evaluation and prints its line, whatever happens.
func evaluate(ctx context.Context, env *Env, f *evaluationFlags) error {
	if err := f.check(env); err != nil {
		return err
	}
	interrupt.SurviveClosedPipes()
	own := *env
	stderr, written := detached(env.Stderr)
	defer written()
	own.Stderr = stderr
	events, err := f.feed(&own, env.Stdout) //nolint:contextcheck // it outlives what ends the trials
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 2) // both find room, whoever listens
	x := &evaluationRun{env: &own, f: f, feed: events, requested: len(f.ids), stage: evaluation.CLI}
	own.Signals = signals
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := interrupt.Listen(env.Signals,
		func() { cancel(evaluation.ErrInterrupted); signals <- os.Interrupt },
		func() { signals <- os.Interrupt })
	defer stop()
	err = x.result(ctx)
	return x.print(env, x.closeFeed(ctx), err)
}

// feed is where events of the run go.
func (f *evaluationFlags) feed(env *Env, stdout io.Writer) (*feed.Feed, error) {
	progress, err := feed.ProgressTarget(f.progress, env.Lookup)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	logs, err := feed.LogTarget(f.logs, env.Lookup)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	return feed.New(feed.Options{
		Progress: progress, Logs: logs, Out: stdout, Redact: evaluation.Placeholders,
		Warn: func(text string) { _, _ = fmt.Fprintf(env.Stderr, "proctor: warning: %s\n", clean(text)) },
	}), nil
}

// feedLimit is how long the end of a run waits for receivers of events.
const feedLimit = 10 * time.Second

// closeFeed sends the events that wait; whole is false where standard output may have got
// a part of one.
func (x *evaluationRun) closeFeed(ctx context.Context) (whole bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), feedLimit)
	defer cancel()
	return x.feed.Close(ctx)
}

// print prints the line, and whatever else is to be said after it.
func (x *evaluationRun) print(env *Env, whole bool, err error) error {
	marker := ""
	if err != nil {
		failure := evaluation.Failure{Stage: x.stage, Err: err, Tasks: x.requested}
		x.line, marker = failure.Line(x.env.hidden().String)
	}
	begin := ""
	if !whole {
		begin = "\n" // consumers look at the beginning of a line
	}
	_, writeErr := fmt.Fprint(env.Stdout, begin, x.line, "\n")
	for _, d := range x.failed {
		if line := d.StderrLine(); line != "" {
			_, _ = fmt.Fprintln(x.env.Stderr, clean(line))
		}
	}
	if err == nil {
		return outputError(writeErr)
	}
	_, _ = fmt.Fprintln(x.env.Stderr, clean(marker))
	printError(x.env, err)
	return errQuiet(exitFailed)
}

// evaluationRun is one run of ownrunner run.
type evaluationRun struct {
	env   *Env
	f     *evaluationFlags
	feed  *feed.Feed
	eval  *evaluation.Evaluation
	stage evaluation.Stage
	// requested is how many tasks were asked for.
	requested int

	line   string
	failed []outcome.Diagnostic
}

// result makes the line. An error means that there is none.
func (x *evaluationRun) result(ctx context.Context) (err error) {
	defer guarded.Recovered("the evaluation", &err)
	defer func() {
		// What an interrupt broke, it was the reason of.
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
	}()
	x.stage = evaluation.Preflight
	tasks, err := x.f.tasks()
	if err != nil {
		return err
	}
	x.requested = len(tasks)
	if err := x.pinned(ctx, tasks); err != nil {
		return err
	}
	x.stage = evaluation.Job
	x.eval = x.evaluation(tasks)
	if err := x.eval.Open(); err != nil {
		return err
	}
	if x.eval.Missing() > 0 { // else it needs no environment either
		if err := x.run(ctx); err != nil {
			return err
		}
	}
	x.stage = evaluation.Emit
	x.line, x.failed, err = x.eval.Line(x.f.run.Policy.Instead)
	return err
}

// pinned compares the tasks with the manifest, before anything of theirs is used.
func (x *evaluationRun) pinned(ctx context.Context, tasks []evaluation.Task) error {
	if x.f.manifest == "" {
		_, _ = fmt.Fprintln(x.env.Stderr, "proctor: warning: no manifest pins the tasks: --digest-manifest FILE does")
		return nil
	}
	pins, err := ownrunner.ReadManifest(ctx, x.f.manifest)
	if err != nil {
		return err
	}
	return evaluation.CheckPinned(ctx, pins, tasks)
}

// evaluation is that of the flags.
func (x *evaluationRun) evaluation(tasks []evaluation.Task) *evaluation.Evaluation {
	o := &x.f.run.Set
	lock := ownrunner.Lock{AgentName: x.f.agentName(), Attempts: 1}
	if o.NAttempts != nil {
		lock.Attempts = *o.NAttempts
	}
	if o.MaxRetries != nil {
		lock.MaxRetries = *o.MaxRetries
	}
	if len(o.Models) == 1 {
		lock.ModelName = &o.Models[0]
	}
	e := &evaluation.Evaluation{Dir: x.f.dir, Tasks: tasks, Lock: lock, Clean: evaluation.Placeholders, Policy: x.f.run.Policy.Asked()}
	name := "oracle" // Harbor's default
	if o.Agent != nil {
		name = *o.Agent
	}
	if entry, ok := agents(x.env).Find(name); ok {
		e.Output = entry.Output
	}
	return e
}

// run runs the trials that have no record.
func (x *evaluationRun) run(ctx context.Context) error {
	env, f := x.env, x.f.run
	if err := jobcli.KeepSecrets(f, x.eval.JobDir()); err != nil {
		return err
	}
	cfg, needs, err := x.config()
	if err != nil {
		return err
	}
	env.hide(f.Secrets, env.source(f.Secrets).OfJob(cfg))
	if err := program(env).CheckAgents(cfg, f, false); err != nil {
		return err
	}
	var opts backendOptions
	if cfg.Environment, opts, err = chooseEnvironment(ctx, env, cfg.Environment, f, f.Set.EnvironmentType != nil); err != nil {
		return err
	}
	s := newSession(ctx, env, f, &opts)
	follower := x.eval.Follow(x.feed)
	defer follower.Close()
	return x.eval.Run(ctx, evaluation.Runner{
		Session: s, Backstop: needs.Backstop, Event: follower.Event,
		Prepared: func(p *job.Prepared, resumed *job.Resumed) error {
			if resumed != nil {
				program(env).PrintResume(&jobcli.Again{}, resumed)
			}
			warnHardening(env, f.Hardened, p)
			if err := confirmVariables(ctx, env, p, nil, true); err != nil {
				return err
			}
			return checkImageSpace(ctx, env, opts, p)
		},
		Run: func(ctx context.Context, p *job.Prepared) (*job.Summary, error) {
			follower.Assigned(p)
			return program(env).Watch(ctx, f, s, p)
		},
	}, cfg)
}

// config is the configuration of the job, and what its trials need.
func (x *evaluationRun) config() (jobdir.Config, evaluation.Needs, error) {
	cfg, _, err := program(x.env).Merge(x.f.run)
	if err != nil {
		return cfg, evaluation.Needs{}, err
	}
	cfg = x.eval.Configure(cfg)
	needs := evaluation.NeedsOf(x.eval.Tasks, cfg)
	if x.f.backstop != nil {
		needs.Backstop = harbor.Seconds(*x.f.backstop)
	}
	if x.f.run.Set.NConcurrent == nil {
		cfg.NConcurrentTrials = ownrunner.Concurrency(needs.Costs, evaluation.ThisMachine(), x.f.cap)
	}
	return cfg, needs, cfg.CheckRunnable()
}
