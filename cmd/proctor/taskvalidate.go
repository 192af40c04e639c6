package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/report"
)

func newTaskValidate(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Report every problem in the files of tasks",
		Long: `validate reads task directories, or directories of them, and names every problem
with its file and place. It runs nothing.

Errors keep a task from being run; the exit code is 2 then. Warnings do not:
unknown and deprecated keys, a missing solution.`,
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
	var dirs []string
	for _, p := range paths {
		found, err := tasksAt(p)
		if err != nil {
			return err
		}
		dirs = append(dirs, found...)
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

// tasksAt lists the directories at a path that are meant to be tasks: itself,
// or those in it that have a task.toml.
func tasksAt(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, withHint(usageErrorf("reading a task: %w", err), "name a task directory or a directory of tasks")
	}
	var below []string
	for _, e := range entries {
		switch child := filepath.Join(dir, e.Name()); {
		case e.Name() == "task.toml" || e.Name() == "instruction.md":
			return []string{dir}, nil
		case isFile(filepath.Join(child, "task.toml")):
			below = append(below, child)
		}
	}
	if len(below) == 0 {
		return nil, withHint(usageErrorf("%q holds no task: there is no task.toml in it nor below it", dir), "'proctor task init NAME' makes a task")
	}
	return below, nil
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
