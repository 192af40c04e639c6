package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/ownrunner"
)

func newOwnrunnerManifest(env *Env) *cobra.Command {
	var output, check string
	cmd := &cobra.Command{
		Use:   "manifest TASKS...",
		Short: "Pin what tasks hold by their digests, or compare",
		Long: `manifest writes the digest of every task as a JSON object, by task name. TASKS are
task directories and directories of tasks. The manifest is kept where the tasks
cannot be changed, so that whoever runs or judges them knows that they are the
ones that were meant.

--check compares the tasks with a manifest. A task that differs, that is not in
it, or that it names and is not there, is an error; the exit code is then 1.

The digest of a task is the SHA-256 of the names and contents of its files. Links
do not count.`,
		Example: `  proctor ownrunner manifest examples/tasks -o digests.json
  proctor ownrunner manifest examples/tasks --check digests.json`,
		Args: somePaths("directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("output") && check != "" {
				return usageErrorf("--check writes nothing: it does not go with --output")
			}
			m, err := digestsOf(args)
			if err != nil {
				return err
			}
			if check != "" {
				return checkDigests(cmd.Context(), env, m, check)
			}
			if output == "-" {
				_, err := env.Stdout.Write(m.AppendJSON(nil))
				return outputError(err)
			}
			if err := atomicfile.WriteUnsynced(output, m.AppendJSON(nil), 0o644); err != nil {
				return usageErrorf("%w", err)
			}
			return nil
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVarP(&output, "output", "o", "-", "write to this `file`")
	cmd.Flags().StringVar(&check, "check", "", "compare with this `file`, and write nothing")
	return cmd
}

// digestsOf digests the tasks at or below directories. Two tasks of one name could not
// be told apart.
func digestsOf(paths []string) (ownrunner.Manifest, error) {
	m := ownrunner.Manifest{}
	from := map[string]string{}
	for _, path := range paths {
		dirs, err := tasksAt(path)
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			if dir, err = filepath.Abs(dir); err != nil {
				return nil, usageErrorf("%w", err)
			}
			name := filepath.Base(dir)
			if other, twice := from[name]; twice {
				return nil, usageErrorf("task %q is there twice: %q and %q", name, other, dir)
			}
			from[name] = dir
			if m[name], err = ownrunner.TaskDigest(dir); err != nil {
				return nil, usageErrorf("%w", err)
			}
		}
	}
	return m, nil
}

func checkDigests(ctx context.Context, env *Env, found ownrunner.Manifest, file string) error {
	pinned, err := ownrunner.ReadManifest(ctx, file)
	if err != nil {
		return usageErrorf("%w", err)
	}
	var errs []error
	for _, task := range slices.Sorted(maps.Keys(found)) {
		errs = append(errs, pinned.Check(task, found[task]))
	}
	for _, task := range slices.Sorted(maps.Keys(pinned)) {
		if _, there := found[task]; !there {
			errs = append(errs, fmt.Errorf("%w: task %q is pinned and not there", ownrunner.ErrDigestMismatch, task))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(env.Stderr, "%s as pinned\n", count(len(found), "task"))
	return nil
}
