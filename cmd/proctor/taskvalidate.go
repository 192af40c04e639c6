package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/shellword"
	"github.com/proctor-run/proctor/report"
)

func newTaskValidate(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Report every problem in the files of tasks",
		Long: `validate reads task directories, or directories of them, and names every problem
with its file and place. It runs nothing.

Errors keep a task from being loaded; the exit code is 2 then. Warnings do not:
unknown and deprecated keys, time limits of 0, scripts with line ends of Windows,
a missing solution.`,
		Example: `  proctor task validate my-task
  proctor task validate --json tasks/*`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return withHint(usageErrorf("no task directory is given"), "proctor task %s", cmd.Use)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return validateTasks(env, args, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per task, nothing else")
	return cmd
}

func validateTasks(env *Env, paths []string, asJSON bool) error {
	dirs, err := findTasks(env, paths, "proctor task validate")
	if err != nil {
		return err
	}
	invalid := 0
	for _, dir := range dirs {
		r := report.ValidateTask(dir)
		if !r.Valid {
			invalid++
		}
		if asJSON {
			if err := encodeJSON(env.Stdout, r); err != nil {
				return err
			}
			continue
		}
		printTaskValidation(env.Stdout, r)
	}
	if invalid == 0 {
		return nil
	}
	return usageErrorf("%d of %s cannot be run", invalid, count(len(dirs), "task"))
}

// findTasks lists the directories at paths that are meant to be tasks, and tells of
// those that are passed over; command is how tasks are named to the command.
func findTasks(env *Env, paths []string, command string) ([]string, error) {
	var dirs []string
	for _, p := range paths {
		found, skipped, err := lookForTasks(p, command)
		if err != nil {
			return nil, err
		}
		for _, dir := range skipped {
			_, _ = fmt.Fprintf(env.Stderr, "proctor: skipping %q: %s\n", clean(dir), clean(harbor.WhyNoTaskFile(dir, command)))
		}
		dirs = append(dirs, found...)
	}
	return dirs, nil
}

// tasksAt lists the directories at a path that are meant to be tasks.
func tasksAt(dir string) ([]string, error) {
	found, _, err := lookForTasks(dir, "name")
	return found, err
}

// lookForTasks lists the directories at a path that are meant to be tasks: itself,
// or those in it that have a task.toml. The other directories in it are skipped, those
// that are hidden aside. Where none is a task, the error says which of them hold some.
func lookForTasks(dir, command string) (found, skipped []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, withHint(usageErrorf("reading a task: %w", err), "name a task directory or a directory of tasks")
	}
	for _, e := range entries {
		switch child := filepath.Join(dir, e.Name()); {
		case e.Name() == "task.toml" || e.Name() == "instruction.md":
			return []string{dir}, nil, nil
		case isFile(filepath.Join(child, "task.toml")):
			found = append(found, child)
		case isDirectory(child) && !strings.HasPrefix(e.Name(), "."):
			skipped = append(skipped, child)
		}
	}
	if len(found) == 0 {
		return nil, nil, noTask(dir, skipped, command)
	}
	return found, skipped, nil
}

// maxGroups is how many directories of tasks an error names.
const maxGroups = 5

// noTask is the error for a directory that is no task and holds none, but for those in
// the directories of it.
func noTask(dir string, below []string, command string) error {
	var groups []string
	more := ""
	for _, child := range below {
		if !harbor.HasTaskIn(child) {
			continue
		}
		if len(groups) == maxGroups {
			more = " …"
			break
		}
		groups = append(groups, shellword.Quote(child))
	}
	if len(groups) == 0 {
		return withHint(usageErrorf("%q holds no task: there is no task.toml in it nor in its directories", dir), "'proctor task init NAME' makes a task")
	}
	return withHint(usageErrorf("%q holds no task itself, but directories of tasks", dir), "%s %s%s", command, strings.Join(groups, " "), more)
}

func printTaskValidation(w io.Writer, v *report.TaskValidation) {
	if len(v.Problems) == 0 {
		_, _ = fmt.Fprintf(w, "%s: valid\n", clean(v.Task))
		return
	}
	for _, p := range v.Problems {
		text := strings.TrimRight(p.String(), "\n")
		_, _ = fmt.Fprintf(w, "%s: %s\n", clean(v.Task), clean(text))
	}
}
