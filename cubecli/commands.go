package cubecli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubetest"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/exitcode"
)

func (p *Program) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the registered cubes",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exitcode.Usagef("'%s' takes no arguments, but %q is given", cmd.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			var rows cube.List
			w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
			for i := range p.Cubes {
				row, err := p.row(&p.Cubes[i], w, !asJSON)
				if err != nil {
					return err
				}
				rows = append(rows, row)
			}
			if asJSON {
				return p.printJSON(rows)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON to standard output")
	return cmd
}

func (p *Program) row(c *Cube, w *tabwriter.Writer, print bool) (*cube.Object, error) {
	sel, err := c.Select(cube.NewRegistry(cube.Options{}), nil, Choice{})
	if err != nil {
		return nil, err
	}
	meta, err := sel.Metadata()
	if err != nil {
		return nil, err
	}
	n, err := sel.NumTasks()
	if err != nil {
		return nil, err
	}
	if print {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, console.Count(n, "task"), meta.Description)
	}
	return cube.Pairs("name", c.Name, "version", meta.Version, "description", meta.Description,
		"num_tasks", n, "needs_container", c.NeedsContainer), nil
}

func (p *Program) showCommand() *cobra.Command {
	var f taskFlags
	cmd := &cobra.Command{
		Use:   "show CUBE",
		Short: "Show what a cube is and which tasks it has",
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := p.cube(args)
			if err != nil {
				return err
			}
			root, err := p.cacheRoot()
			if err != nil { // nothing can be installed, and there is something to show
				root = ""
			}
			sel, err := c.Select(cube.NewRegistry(cube.Options{CacheRoot: root}), nil, f.choice)
			if err != nil {
				return err
			}
			return p.show(sel, f.json)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "write JSON to standard output")
	p.defineTasks(cmd, &f, false)
	return cmd
}

func (p *Program) show(sel *cube.Selection, asJSON bool) error {
	meta, err := sel.Metadata()
	if err != nil {
		return err
	}
	tasks, err := sel.Tasks()
	if err != nil {
		return err
	}
	data, err := sel.Installed()
	if err != nil {
		return err
	}
	subsets, err := subsetsOf(sel)
	if err != nil {
		return err
	}
	if asJSON {
		return p.showJSON(meta, tasks, data, subsets)
	}
	_, _ = fmt.Fprintf(p.Stdout, "%s %s: %s\n", console.Clean(meta.Name), console.Clean(meta.Version), console.Clean(meta.Description))
	if len(meta.Tags) > 0 {
		_, _ = fmt.Fprintf(p.Stdout, "tags: %s\n", console.Clean(strings.Join(meta.Tags, ", ")))
	}
	if sel.Installable() || data.Tasks > 0 {
		_, _ = fmt.Fprintf(p.Stdout, "installed data: %s\n", describeData(data, len(tasks)))
	}
	if len(subsets) > 0 {
		_, _ = fmt.Fprintf(p.Stdout, "subsets: %s\n", console.Clean(describeSubsets(subsets)))
	}
	_, _ = fmt.Fprintf(p.Stdout, "%s:\n", console.Count(len(tasks), "task"))
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	for _, e := range tasks {
		_, _ = fmt.Fprintf(w, "  %s\t%s\n", console.Clean(e.ID), console.Clean(e.Metadata.Base().AbstractDescription))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the list of tasks: %w", err)
	}
	return nil
}

// describeData says for how many tasks there is data, and where.
func describeData(data cube.Installed, tasks int) string {
	text := fmt.Sprintf("of %d of %s", data.Tasks, console.Count(tasks, "task"))
	if len(data.Dirs) > 0 {
		text += ", in " + console.Clean(strings.Join(data.Dirs, ", "))
	}
	return text
}

func (p *Program) showJSON(meta *cube.BenchmarkMetadata, tasks []cube.Entry, data cube.Installed, subsets []subset) error {
	list := make(cube.List, len(tasks))
	for i, e := range tasks {
		m, err := cube.ValueOf(e.Metadata)
		if err != nil {
			return err
		}
		list[i] = cube.Pairs("task_id", e.ID, "metadata", m)
	}
	m, err := cube.ValueOf(meta)
	if err != nil {
		return err
	}
	named := make(cube.List, len(subsets))
	for i, s := range subsets {
		named[i] = cube.Pairs("name", s.name, "num_tasks", s.tasks)
	}
	return p.printJSON(cube.Pairs("benchmark", m, "subsets", named, "tasks", list, "with_data", data.Tasks, "data", texts(data.Dirs)))
}

func texts(list []string) cube.List {
	out := make(cube.List, len(list))
	for i, s := range list {
		out[i] = cube.Str(s)
	}
	return out
}

func (p *Program) testCommand() *cobra.Command {
	var f taskFlags
	var limit time.Duration
	var maxTasks int
	var ref referenceFlags
	cmd := &cobra.Command{
		Use:   "test CUBE",
		Short: "Run the conformance suite on a cube",
		Long: `test runs the conformance checks on a cube: does every task reset, step,
evaluate and close as it must, does the debug agent solve it, does nothing leak.
Every check looks at every task, unless --max-tasks says how many.

The exit code is 0 when every check passes and 4 when one fails.

With --reference, or one of the flags that the command of the reference has, it
is that command: the debug agent plays an episode per task, the reference's own
checks, lines and report file come of it, and the exit code is 1 when a task did
not reach reward 1.0. --json then prints the reports of the episodes.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.cube(args)
			if err != nil {
				return err
			}
			if maxTasks < 0 {
				return exitcode.Usagef("--max-tasks must not be negative")
			}
			ctx, stop := p.interruptible(cmd.Context())
			defer stop()
			if ref.asked(cmd.Flags()) {
				if cmd.Flags().Changed("check-timeout") || maxTasks > 0 {
					return exitcode.Usagef("--check-timeout and --max-tasks are not supported with the checks of the reference")
				}
				return p.referenceTest(ctx, c, &f, ref)
			}
			return p.test(ctx, c, &f, limit, maxTasks)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "write JSON to standard output")
	p.defineTasks(cmd, &f, true)
	cmd.Flags().DurationVar(&limit, "check-timeout", 10*time.Minute, "time that one check may take for one task")
	cmd.Flags().IntVar(&maxTasks, "max-tasks", 0, "look at this many tasks only (default: all)")
	ref.define(cmd.Flags())
	return cmd
}

func (p *Program) test(ctx context.Context, c *Cube, f *taskFlags, limit time.Duration, maxTasks int) error {
	return p.withTestOptions(ctx, c, f, func(o cube.Options) error { return p.check(ctx, c, f, o, limit, maxTasks) })
}

// withTestOptions calls do with an empty cache and the sandboxes that a cube needs.
func (p *Program) withTestOptions(ctx context.Context, c *Cube, f *taskFlags, do func(cube.Options) error) (err error) {
	if c.Agent == nil {
		return exitcode.Usagef("%s has no debug agent, which the checks need", c.Name)
	}
	root, err := os.MkdirTemp("", "proctor-cube-")
	if err != nil {
		return fmt.Errorf("making a directory for what the cube installs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	backend, done, err := p.open(ctx, c, f.sandbox)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	return do(cube.Options{CacheRoot: root, Sandbox: backend})
}

func (p *Program) check(ctx context.Context, c *Cube, f *taskFlags, o cube.Options, limit time.Duration, maxTasks int) error {
	sel, err := c.Select(cube.NewRegistry(o), o.Sandbox, f.choice)
	if err != nil {
		return err
	}
	infra, err := c.infra(o.Sandbox)
	if err != nil {
		return err
	}
	results, err := cubetest.Check(ctx, cubetest.Subject{
		Register: func(r *cube.Registry) error {
			_, err := c.load(r, nil)
			return err
		},
		Config: sel.Config(), Agent: c.Agent, Goal: c.Goal, Infra: infra, Options: o, CheckTimeout: limit, MaxTasks: maxTasks, VolatileInfo: c.VolatileInfo,
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
	return p.printChecks(checked{sel.Name(), results, total}, f.json)
}

// checked is what the checks of a cube came to.
type checked struct {
	name    string
	results []cubetest.Result
	total   int // tasks that there are
}

// tasks returns how many tasks the checks looked at.
func (c checked) tasks() int {
	n := 0
	for _, r := range c.results {
		n = max(n, r.Tasks)
	}
	return n
}

// printChecks prints every check and fails when one failed.
func (p *Program) printChecks(c checked, asJSON bool) error {
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
			_, _ = fmt.Fprintf(p.Stdout, "%s  %s\n", r.Status, r.Check)
			for line := range strings.Lines(r.Reason) {
				_, _ = fmt.Fprintf(p.Stdout, "      %s\n", console.Clean(strings.TrimSuffix(line, "\n")))
			}
		}
	}
	if asJSON {
		if err := p.printJSON(cube.Pairs("name", c.name, "tasks", c.tasks(), "tasks_total", c.total,
			"passed", len(c.results)-failed, "failed", failed, "checks", list)); err != nil {
			return err
		}
	} else {
		_, _ = fmt.Fprintf(p.Stdout, "looked at %d of %s\n", c.tasks(), console.Count(c.total, "task"))
		_, _ = fmt.Fprintf(p.Stdout, "%s: %d of %s passed\n", console.Clean(c.name), len(c.results)-failed, console.Count(len(c.results), "check"))
	}
	if failed > 0 {
		return exitcode.Quiet(exitcode.Threshold)
	}
	return nil
}
