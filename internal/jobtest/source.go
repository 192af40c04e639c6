package jobtest

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
)

// GitRepo is a repository with tasks that a test makes.
type GitRepo struct {
	t   testing.TB
	Dir string
}

// NewGitRepo makes a repository with a commit that has tasks at these paths.
func NewGitRepo(t testing.TB, tasks ...string) *GitRepo {
	t.Helper()
	need.Program(t, "git")
	r := &GitRepo{t, t.TempDir()}
	r.Git("init", "-q", "-b", "main")
	for _, task := range tasks {
		WriteTask(t, filepath.Join(r.Dir, filepath.FromSlash(task)), "Do "+task)
	}
	r.Commit()
	return r
}

// URL is the repository's address.
func (r *GitRepo) URL() string { return "file://" + filepath.ToSlash(r.Dir) }

// Git runs git in the repository and returns what it prints.
func (r *GitRepo) Git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = r.Dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Commit commits everything and returns the commit.
func (r *GitRepo) Commit() string {
	r.t.Helper()
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", "state")
	return r.Git("rev-parse", "HEAD")
}

// WriteTask makes a task directory with this instruction.
func WriteTask(t testing.TB, dir, instruction string) {
	t.Helper()
	for name, text := range map[string]string{
		"task.toml": "", "instruction.md": instruction, "environment/Dockerfile": "FROM debian\n", "tests/test.sh": "true\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// Instruction reads the instruction of a task directory.
func Instruction(t testing.TB, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "instruction.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Registry writes a registry file with these datasets and returns its path.
func Registry(t testing.TB, entries ...map[string]any) string {
	t.Helper()
	data, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "registry.json")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// RegistryEntry is a dataset of a registry file.
func RegistryEntry(name, version string, tasks ...map[string]any) map[string]any {
	return map[string]any{"name": name, "version": version, "description": "d", "tasks": append([]map[string]any{}, tasks...)}
}
