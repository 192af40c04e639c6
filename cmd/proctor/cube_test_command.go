package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubetest"
)

func newCubeTest(env *Env) *cobra.Command {
	var f cubeFlags
	var limit time.Duration
	var maxTasks int
	cmd := &cobra.Command{
		Use:   "test CUBE",
		Short: "Check that a cube keeps the rules",
		Long: `test runs the conformance checks on a cube: does every task reset, step,
evaluate and close as it must, does the debug agent solve it, does nothing leak.
The debug agent of a Harbor task plays its solution. Every check looks at every
task, unless --max-tasks says how many.

The exit code is 0 when every check passes and 4 when one fails.`,
		Example: `  proctor cube test arithmetic-cube
  proctor cube test examples/tasks/hello-world -e host`,
		Args: oneCube,
		RunE: func(cmd *cobra.Command, args []string) error {
			if maxTasks < 0 {
				return usageErrorf("--max-tasks must not be negative")
			}
			s, err := findCube(env, args[0])
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			return testCube(ctx, env, s, &f, limit, maxTasks)
		},
	}
	f.define(cmd, true)
	cmd.Flags().DurationVar(&limit, "check-timeout", 10*time.Minute, "time that one check may take for one task")
	cmd.Flags().IntVar(&maxTasks, "max-tasks", 0, "look at this many tasks only (default: all)")
	return cmd
}

func testCube(ctx context.Context, env *Env, s *subject, f *cubeFlags, limit time.Duration, maxTasks int) (err error) {
	root, remove, err := temporaryCache()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	o, done, err := s.options(ctx, env, f, root)
	if err != nil {
		return err
	}
	defer func() { _ = done() }()
	sel, err := s.choose(cube.NewRegistry(o), o, f)
	if err != nil {
		return err
	}
	results, err := cubetest.Check(ctx, cubetest.Subject{
		Register: func(r *cube.Registry) error {
			_, err := s.register(r)
			return err
		},
		Config: sel.Config(), Agent: s.agent, Goal: s.goal, Options: o, CheckTimeout: limit, MaxTasks: maxTasks, VolatileInfo: s.volatile,
	})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	total := 0
	for _, err := range sel.TaskConfigs() {
		if err != nil {
			break // a check has said so
		}
		total++
	}
	return printChecks(env, checkedCube{sel.Name(), results, total}, f.json)
}

// checkedCube is what the checks of a cube came to.
type checkedCube struct {
	name    string
	results []cubetest.Result
	total   int // tasks that there are
}

// tasks returns how many tasks the checks looked at.
func (c checkedCube) tasks() int {
	n := 0
	for _, r := range c.results {
		n = max(n, r.Tasks)
	}
	return n
}

// printChecks prints every check and ends with exitThreshold when one failed.
func printChecks(env *Env, c checkedCube, asJSON bool) error {
	failed := 0
	list := make(cube.List, len(c.results))
	for i, r := range c.results {
		if r.Status == cubetest.Fail {
			failed++
		}
		var reason any
		if r.Reason != "" {
			reason = r.Reason
		}
		list[i] = cube.Pairs("check", r.Check, "status", strings.ToLower(string(r.Status)), "reason", reason)
		if !asJSON {
			fmt.Fprintf(env.Stdout, "%s  %s\n", r.Status, r.Check)
			for line := range strings.Lines(r.Reason) {
				fmt.Fprintf(env.Stdout, "      %s\n", clean(strings.TrimSuffix(line, "\n")))
			}
		}
	}
	if asJSON {
		if err := printJSON(env, cube.Pairs("name", c.name, "tasks", c.tasks(), "tasks_total", c.total,
			"passed", len(c.results)-failed, "failed", failed, "checks", list)); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(env.Stdout, "looked at %d of %s\n", c.tasks(), count(c.total, "task"))
		fmt.Fprintf(env.Stdout, "%s: %d of %s passed\n", clean(c.name), len(c.results)-failed, count(len(c.results), "check"))
	}
	if failed > 0 {
		return errQuiet(exitThreshold)
	}
	return nil
}
