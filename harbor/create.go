package harbor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// What a new task cannot be called or have.
var (
	// ErrName is the error for a name that cannot be a directory: letters, digits,
	// ".", "_" and "-" may be in it, the first of them a letter or a digit.
	ErrName = errors.New("not a name for a task")
	// ErrNoPackage is the error for a description of what is not a package.
	ErrNoPackage = errors.New("only a package has a description")
)

var newName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Create makes a task directory that works, to start from, in a directory that is
// made if it does not exist, and returns its path: the task asks for a file, its
// solution writes it, and its test looks for it. The name is NAME, or ORG/NAME for a
// package, which may have a description.
//
// The errors are [ErrName], [ErrNoPackage], one that is fs.ErrExist when there is
// something of the name, and those of the file system. Nothing that exists is
// changed.
func Create(parent, name, description string) (dir string, err error) {
	org, short, packaged := strings.Cut(name, "/")
	if !packaged {
		short = name
	}
	if !newName.MatchString(short) || packaged && !newName.MatchString(org) {
		return "", fmt.Errorf("%q is %w", name, ErrName)
	}
	cfg := DefaultConfig()
	switch {
	case packaged:
		cfg.Task = &PackageInfo{Name: name, Description: description}
	case description != "":
		return "", fmt.Errorf("%q is not a package: %w", name, ErrNoPackage)
	}
	dir = filepath.Join(parent, short)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("making the task: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return dir, fmt.Errorf("making the task: %w", err)
	}
	for _, f := range newFiles(cfg.TOML()) {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return dir, fmt.Errorf("making the task: %w", err)
		}
		if err := os.WriteFile(path, []byte(f.text), f.mode); err != nil {
			return dir, fmt.Errorf("making the task: %w", err)
		}
	}
	return dir, nil
}

type newFile struct {
	name string
	mode fs.FileMode
	text string
}

func newFiles(config []byte) []newFile {
	return []newFile{
		{configFile, 0o644, string(config)},
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
