package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/internal/follow"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/report"
)

func newTrialAttach(env *Env) *cobra.Command {
	var tail *int
	var noFollow bool
	cmd := &cobra.Command{
		Use:   "attach TRIALDIR|JOBDIR",
		Short: "Follow a trial: print what its agent prints, as it comes, until it ends",
		Long: `attach prints what the agent of a trial prints and, behind "trial.log: ", what
the trial notes, from the beginning. When the trial has ended it says how, and
ends too. A job directory will do while a single trial of it runs.

It only reads: an interrupt ends attach, and the trial goes on. Of an output
that is longer than what is kept, the last part comes when the agent has ended.`,
		Example: `  proctor trial attach jobs/2026-06-09__10-00-00
  proctor trial attach --tail 20 jobs/2026-06-09__10-00-00/hello-world__AbCdEfG`,
		Args: oneDirectory("trial"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			a, err := newAttachment(env, args[0])
			if err != nil {
				return err
			}
			if tail != nil {
				a.lines = max(*tail, 0)
			}
			a.once = noFollow
			if err := a.run(ctx); ctx.Err() == nil {
				return err
			}
			return &exitcode.Error{Code: exitInterrupted, Err: errors.New("interrupted; the trial is left alone")}
		},
	}
	flags.Optional(cmd.Flags(), &tail, flags.Int, "tail", "", "begin with the last `number` of lines that are there, of each log")
	cmd.Flags().BoolVar(&noFollow, "no-follow", false, "print what is there, and wait for nothing")
	return cmd
}

// attachInterval is between two looks at a trial: short for people, and of no weight for
// the machine.
const attachInterval = 500 * time.Millisecond

// trialLogFile is what a trial notes of itself.
const trialLogFile = "trial.log"

// attachment is a trial that is followed.
type attachment struct {
	dir, job string
	output   string // file of the agent's log directory; empty where there is none
	lines    int    // of what is there, follow.All for all
	once     bool   // wait for nothing
	out      *bufio.Writer
	warn     func(format string, args ...any)
	// wait waits until it is time to look again.
	wait func(ctx context.Context) error

	begun       bool
	trial       follow.Log
	agent       follow.Log
	lastTrouble string
}

// newAttachment finds the trial that a directory is of.
func newAttachment(env *Env, dir string) (*attachment, error) {
	dir, err := trialToAttach(dir)
	if err != nil {
		return nil, err
	}
	t, err := readTrial(dir, 0)
	if err != nil {
		return nil, err
	}
	a := &attachment{dir: dir, lines: follow.All, out: bufio.NewWriter(env.Stdout), job: jobOf(dir)}
	a.warn = func(format string, args ...any) {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: "+format+"\n", args...)
	}
	a.wait = func(ctx context.Context) error { return clock.Sleep(ctx, attachInterval) }
	name := t.Agent
	if t.Document != nil && t.Document.Config.Agent.Name != nil {
		name = *t.Document.Config.Agent.Name
	}
	entry, _ := agents(env).Find(name)
	if a.output = entry.Output; a.output == "" {
		a.warn("it is not known where agent %s keeps what it prints: only %s is shown", clean(name), trialLogFile)
	}
	return a, nil
}

// jobOf is the directory in which a trial's lies, whatever the trial is called by.
func jobOf(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if led, err := filepath.EvalSymlinks(dir); err == nil {
		dir = led
	}
	return filepath.Dir(dir)
}

// trialToAttach is the directory itself, or that of the one trial of a job that runs.
func trialToAttach(dir string) (string, error) {
	isJob := slices.ContainsFunc([]string{scan.LockFile, journal.File, jobdir.GuardFile}, func(name string) bool { return isFile(filepath.Join(dir, name)) })
	if !isJob {
		return dir, nil
	}
	var running []string
	if workOn(dir) != workEnded {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", usageErrorf("%w", err)
		}
		for _, e := range entries {
			one := filepath.Join(dir, e.Name())
			if e.IsDir() && isFile(filepath.Join(one, scan.ConfigFile)) && !exists(filepath.Join(one, scan.ResultFile)) {
				running = append(running, e.Name())
			}
		}
	}
	switch n := len(running); n {
	case 1:
		return filepath.Join(dir, running[0]), nil
	case 0:
		return "", withHint(usageErrorf("no trial of job %q runs", dir), "'proctor job show' names those that have ended")
	default:
		const most = 5
		names := clean(strings.Join(running[:min(n, most)], ", "))
		if n > most {
			names += ", …"
		}
		return "", withHint(usageErrorf("%s of job %q run: %s", count(n, "trial"), dir, names), "name one of them: proctor trial attach TRIALDIR")
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// work says whether somebody works on the trials of a directory.
type work int

const (
	workUntold work = iota // nothing tells, as where Harbor runs them
	workGoesOn
	workEnded
)

// workOn asks the guard of a job. A directory with a journal is a job of proctor, which
// has one as long as it runs.
func workOn(job string) work {
	host, _ := os.Hostname() // a machine may have no name
	switch {
	case jobdir.ReadHolder(job, host) != nil:
		return workGoesOn
	case exists(filepath.Join(job, journal.File)):
		return workEnded
	}
	return workUntold
}

// run prints what comes until the trial has ended, and then how.
func (a *attachment) run(ctx context.Context) error {
	if !a.once && !exists(filepath.Join(a.dir, scan.ResultFile)) && workOn(a.job) == workUntold {
		a.warn("whether this trial runs cannot be told; it is followed until its result is there")
	}
	for {
		over := a.once || a.isOver()
		if err := a.look(ctx, over); err != nil {
			return err
		}
		if over {
			t, err := readTrial(a.dir, 0)
			if err != nil {
				return err
			}
			// A result may have been set aside for another attempt.
			if a.once || t.Document != nil || workOn(a.job) != workGoesOn {
				return a.say(t)
			}
		}
		if err := a.wait(ctx); err != nil {
			return err
		}
	}
}

func (a *attachment) isOver() bool {
	return exists(filepath.Join(a.dir, scan.ResultFile)) || workOn(a.job) == workEnded
}

// say says in one line how the trial ended.
func (a *attachment) say(t *report.Trial) error {
	text := endText(t)
	switch w := workOn(a.job); {
	case t.Document != nil:
	case w == workGoesOn:
		text = "it has not ended: it runs, or waits for its turn"
	case w == workEnded:
		text = "it has not ended, and nobody works on it any more"
	}
	_, _ = fmt.Fprintf(a.out, "trial %s: %s\n", clean(cmp.Or(t.Trial, filepath.Base(a.dir))), text)
	return outputError(a.out.Flush())
}

// look prints what is new. What has no line end is printed at the last look.
func (a *attachment) look(ctx context.Context, last bool) error {
	root, err := bounded.OpenDir(a.dir)
	if err != nil {
		return fmt.Errorf("following the trial: %w", err)
	}
	defer func() { _ = root.Close() }()
	lines := follow.All
	if !a.begun {
		lines = a.lines
	}
	logs := []func(context.Context, *os.Root, int, bool) error{a.lookAtAgent, a.lookAtTrial}
	if !a.begun { // the trial has noted more of what came before the agent
		slices.Reverse(logs)
	}
	a.begun = true
	for _, log := range logs {
		if err := log(ctx, root, lines, last); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			a.trouble(err)
		}
	}
	return outputError(a.out.Flush())
}

// trouble warns once of what keeps the same log from being read.
func (a *attachment) trouble(err error) {
	if text := clean(exception.PlainText(err)); text != a.lastTrouble {
		a.lastTrouble = text
		a.warn("%s", text)
	}
}

func (a *attachment) lookAtTrial(ctx context.Context, root *os.Root, lines int, last bool) error {
	each := a.printer("trial.log: ")
	err := a.trial.Look(ctx, root, trialLogFile, lines, each)
	if last {
		err = errors.Join(err, a.trial.Flush(each))
	}
	return err
}

// lookAtAgent reads the outputs of steps that have ended, too: they have been moved to
// the directory of the step.
func (a *attachment) lookAtAgent(ctx context.Context, root *os.Root, lines int, last bool) error {
	if a.output == "" {
		return nil
	}
	var errs []error
	each := a.printer("")
	for _, dir := range append(stepDirs(root), "agent") {
		errs = append(errs, a.agent.Look(ctx, root, filepath.Join(dir, a.output), lines, each))
	}
	if last {
		errs = append(errs, a.agent.Flush(each))
	}
	return errors.Join(errs...)
}

func (a *attachment) printer(prefix string) func(string) error {
	return func(line string) error {
		_, err := io.WriteString(a.out, prefix+clean(line)+"\n")
		return outputError(err)
	}
}

// maxSteps bounds the directories of steps that are looked at.
const maxSteps = 1000

// stepDirs are the agent's directories of the steps of a trial, in the order in which
// they were made.
func stepDirs(root *os.Root) []string {
	if info, err := root.Lstat("steps"); err != nil || !info.IsDir() {
		return nil
	}
	dir, err := root.Open("steps")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	entries, _ := dir.ReadDir(maxSteps) // those that could be read
	type step struct {
		agent string
		made  time.Time
	}
	var steps []step
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.IsDir() {
			steps = append(steps, step{filepath.Join("steps", e.Name(), "agent"), info.ModTime()})
		}
	}
	slices.SortFunc(steps, func(a, b step) int {
		return cmp.Or(a.made.Compare(b.made), strings.Compare(a.agent, b.agent))
	})
	out := make([]string, len(steps))
	for i, s := range steps {
		out[i] = s.agent
	}
	return out
}
