package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/harbor"
)

func newTaskInit(env *Env) *cobra.Command {
	var parent, description string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "init [ORG/]NAME",
		Short: "Make a task directory that works, to start from",
		Long: `init makes a directory with everything that a task needs: task.toml,
instruction.md, environment/Dockerfile, solution/solve.sh and tests/test.sh. The
task asks for a file and checks that it is there. Nothing that exists is changed.

With ORG/ in front, the task gets a package name.`,
		Example: `  proctor task init count-words
  proctor task init my-org/count-words -p tasks --description "Counting words"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return withHint(usageErrorf("accepts one name, got %d", len(args)), "proctor task %s", cmd.Use)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := initTask(args[0], parent, description)
			if err != nil {
				return err
			}
			if asJSON {
				return encodeJSON(env.Stdout, map[string]string{"dir": dir})
			}
			_, _ = fmt.Fprintf(env.Stdout, "%s is a task; try it with: proctor run -p %s -a oracle\n", clean(dir), clean(dir))
			return nil
		},
	}
	cmd.Flags().StringVarP(&parent, "path", "p", ".", "make it in this `directory`")
	cmd.Flags().StringVar(&description, "description", "", "what the package is about, with ORG/NAME")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, nothing else")
	return cmd
}

func initTask(name, parent, description string) (dir string, err error) {
	dir, err = harbor.Create(parent, name, description)
	switch {
	case errors.Is(err, harbor.ErrName):
		return "", withHint(usageErrorf("%w", err), "use letters, digits, '.', '_' and '-', as in my-task or my-org/my-task")
	case errors.Is(err, harbor.ErrNoPackage):
		return "", withHint(usageErrorf("--description is that of a package, and %q is not a package", name), "name it ORG/%s", name)
	case errors.Is(err, fs.ErrExist):
		return "", withHint(usageErrorf("%q exists already", dir), "choose another name; 'proctor task validate %s' says what is wrong with a task", dir)
	}
	return dir, err
}
