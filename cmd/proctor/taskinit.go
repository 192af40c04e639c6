package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

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

// taskName is what a new task may be called: it becomes a directory.
var taskName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func initTask(name, parent, description string) (dir string, err error) {
	org, short, packaged := strings.Cut(name, "/")
	if !packaged {
		short = name
	}
	if !taskName.MatchString(short) || packaged && !taskName.MatchString(org) {
		return "", withHint(usageErrorf("%q is not a name for a task", name), "use letters, digits, '.', '_' and '-', as in my-task or my-org/my-task")
	}
	cfg := harbor.DefaultConfig()
	switch {
	case packaged:
		cfg.Task = &harbor.PackageInfo{Name: name, Description: description}
	case description != "":
		return "", withHint(usageErrorf("--description is that of a package, and %q is not a package", name), "name it ORG/%s", name)
	}
	dir = filepath.Join(parent, short)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("making the task: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return "", withHint(usageErrorf("%q exists already", dir), "choose another name; 'proctor task validate %s' says what is wrong with a task", dir)
		}
		return "", fmt.Errorf("making the task: %w", err)
	}
	for _, f := range newTaskFiles(cfg.TOML()) {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", fmt.Errorf("making the task: %w", err)
		}
		if err := os.WriteFile(path, []byte(f.text), f.mode); err != nil {
			return "", fmt.Errorf("making the task: %w", err)
		}
	}
	return dir, nil
}

type newFile struct {
	name string
	mode fs.FileMode
	text string
}

func newTaskFiles(config []byte) []newFile {
	return []newFile{
		{"task.toml", 0o644, string(config)},
		{"instruction.md", 0o644, "Create a file /app/hello.txt that contains the text \"Hello, world!\".\n"},
		{"environment/Dockerfile", 0o644, "FROM debian:bookworm-slim\n\nWORKDIR /app\n"},
		{"solution/solve.sh", 0o755, "#!/bin/bash\nset -e\n\necho 'Hello, world!' > /app/hello.txt\n"},
		{"tests/test.sh", 0o755, `#!/bin/bash
# Runs after the agent. Write the reward to /logs/verifier/reward.txt, in every
# case: a missing file is an error, not a 0.

if [ "$(cat /app/hello.txt)" = 'Hello, world!' ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
`},
	}
}
