package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/jobcli"
)

// checkFlags are the flags of task check.
type checkFlags struct {
	run     *jobcli.Flags
	repeats int
	out     string
	keep    bool
	strict  bool
	json    bool
}

func newTaskCheck(env *Env) *cobra.Command {
	f := &checkFlags{run: &jobcli.Flags{}}
	cmd := &cobra.Command{
		Use:   "check DIR|DATASET...",
		Short: "Run tasks to find out whether their rewards can be trusted",
		Long: `check runs each task several times and reports the result:

  files           nothing that 'proctor task validate' finds
  oracle          the solution gets 1, or oracle_reward of [metadata]
  nop             no work gets 0
  repeats         all runs of the solution come to the same
  network         verification gives the same result offline
  reward channel  an agent cannot write its own reward; it tries, as the task's
                  agent user: reward files, links, locked directories, test
                  scripts, programs, and a process that stays

A check passes, warns, fails, or is skipped if it cannot run. Tasks
whose tests need the network, or whose agent can reach the reward, work: that is
a warning. docs/tasks.md tells what to do about each.

The exit code is 4 when a check fails; with --strict also when one warns. The
trials are kept then, and removed otherwise.`,
		Example: `  proctor task check my-task
  proctor task check tasks -e sandbox -n 8 --json
  proctor task check my-task --sealed-verifier --strict`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return withHint(usageErrorf("no task directory is given"), "proctor task %s", cmd.Use)
			}
			return nil
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntVar(&f.repeats, "repeats", 3, "run the solution this `number` of times")
	fs.BoolVar(&f.strict, "strict", false, "exit with 4 also when a check warns")
	fs.StringVarP(&f.out, "output", "o", "", "keep the trials in this `directory`, as jobs")
	fs.BoolVar(&f.keep, "keep", false, "keep the trials also when all checks pass")
	fs.BoolVar(&f.json, "json", false, "print one JSON object per task, nothing else")
	fs.BoolVar(&f.run.Sealed, "sealed-verifier", false, "as for run: try the reward channel with the verifier sealed")
	program(env).DefineEnvironment(fs, f.run)
	jobcli.DefineHarborEnvironment(fs, f.run)
	jobcli.DefineConcurrency(fs, f.run)
	jobcli.DefineMultipliers(fs, &f.run.Set)
	jobcli.DefineProgress(fs, f.run)
	jobcli.DefineVariables(fs, f.run)
	jobcli.DefineSecrets(fs, f.run)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.repeats < 1 {
			return usageErrorf("--repeats %d: the solution has to run at least once", f.repeats)
		}
		dirs, err := findTasks(env, args, "proctor task check")
		if err != nil {
			return err
		}
		return checkTasks(cmd.Context(), env, f, dirs)
	}
	return cmd
}

// say tells people what is going on.
func (f *checkFlags) say(env *Env, format string, args ...any) {
	if !f.run.Set.Quiet {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: "+format+"\n", args...)
	}
}
