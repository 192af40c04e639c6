package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/harbor/terminalbench"
	"github.com/proctor-run/proctor/internal/flags"
)

// migrateFlags are the flags of task migrate.
type migrateFlags struct {
	in, out string
	json    bool
	opts    terminalbench.Options
}

func newTaskMigrate(env *Env) *cobra.Command {
	f := &migrateFlags{}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Turn Terminal-Bench tasks into Harbor tasks",
		Long: `migrate maps a Terminal-Bench task, or every task of a directory, to Harbor task
directories of the same names. It reads nothing outside of the source.

Each task is written atomically; one that fails leaves nothing. Tasks that exist
already are not touched. A task that fails does not stop the others; the exit
code is 2 then.`,
		Example: `  proctor task migrate -i old-tasks -o tasks
  proctor task migrate -i old-tasks/hello -o tasks --cpus 2 --memory-mb 4096`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			return migrateTasks(ctx, env, f)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.in, "input", "i", "", "`directory` of Terminal-Bench tasks, or of one")
	fs.StringVarP(&f.out, "output", "o", "", "`directory` to put the tasks in")
	flags.Optional(fs, &f.opts.CPUs, flags.Int, "cpus", "", "`number` of processors of each environment")
	flags.Optional(fs, &f.opts.MemoryMB, flags.Int, "memory-mb", "", "`MiB` of memory of each environment")
	flags.Optional(fs, &f.opts.StorageMB, flags.Int, "storage-mb", "", "`MiB` of storage of each environment")
	flags.Optional(fs, &f.opts.GPUs, flags.Int, "gpus", "", "`number` of GPUs of each environment")
	fs.BoolVar(&f.json, "json", false, "print one JSON object, nothing else")
	return cmd
}

// jsonMigrated is what task migrate --json prints.
type jsonMigrated struct {
	Mapped []string            `json:"mapped"`
	Failed []jsonFailedMapping `json:"failed"`
	// Changes are the lines that people see.
	Changes []string `json:"changes"`
}

type jsonFailedMapping struct {
	Task    string `json:"task"`
	Message string `json:"message"`
}

func migrateTasks(ctx context.Context, env *Env, f *migrateFlags) error {
	if f.in == "" || f.out == "" {
		return withHint(usageErrorf("migrate needs a source and a target"), "proctor task migrate -i OLD -o NEW")
	}
	out := jsonMigrated{Mapped: []string{}, Failed: []jsonFailedMapping{}, Changes: []string{}}
	opts := f.opts
	opts.Atomic = true
	opts.Print = func(line string) {
		out.Changes = append(out.Changes, line)
		if !f.json {
			_, _ = fmt.Fprintln(env.Stdout, clean(line))
		}
	}
	res, err := terminalbench.Map(ctx, f.in, f.out, opts)
	if invalid, ok := errors.AsType[*exception.Error](err); ok {
		return usageErrorf("%w", invalid)
	}
	if err != nil {
		return err
	}
	out.Mapped = append(out.Mapped, res.Mapped...)
	for _, name := range res.Mapped {
		for _, p := range harbor.Validate(filepath.Join(f.out, name)) {
			opts.Print(fmt.Sprintf("[%s] %s", name, p))
		}
	}
	for _, failure := range res.Failed {
		out.Failed = append(out.Failed, jsonFailedMapping{failure.Task, failure.Err.Error()})
	}
	switch {
	case f.json:
		err = encodeJSON(env.Stdout, out)
	case len(res.Mapped) > 0:
		_, _ = fmt.Fprintf(env.Stdout, "%s mapped to %s; check them with: proctor task check %s\n", count(len(res.Mapped), "task"), clean(f.out), clean(f.out))
	}
	switch {
	case err != nil:
		return err
	case len(res.Failed) > 0:
		return usageErrorf("%d of %s cannot be mapped", len(res.Failed), count(len(res.Failed)+len(res.Mapped), "task"))
	case len(res.Mapped) == 0:
		return withHint(usageErrorf("%q holds no Terminal-Bench task", f.in), "a task is a directory with a task.yaml")
	}
	return nil
}
