package harbor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Bounds of what is read into memory from a task directory, in bytes. Harbor
// has none; real files are far below.
const (
	maxConfigSize      = 16 << 20
	maxInstructionSize = 64 << 20
)

// Task is a task directory that passed the checks of loading.
type Task struct {
	// Dir is the absolute path of the directory, links resolved.
	Dir string
	// Name is [task].name, else the base name of the directory; ShortName is
	// what follows the slash of [task].name, else the name.
	Name, ShortName string
	Config          Config
	// Report holds unknown keys and deprecations of task.toml.
	Report schema.Report
	// Instruction is what the agent is told; empty for a multi-step task, see
	// [Task.StepInstruction].
	Instruction string

	extra []string // texts added to each instruction
}

// LoadOptions are choices of the job that concern loading.
type LoadOptions struct {
	// ExtraInstructions are files whose text is added to each instruction;
	// "~" is the home directory.
	ExtraInstructions []string
	// Home is the home directory; empty for none.
	Home string
}

// Load reads a task directory (section 1.4). Errors are typed with Harbor's
// exception names and texts; the first failure wins. Errors in task.toml name
// the file.
func Load(dir string, o LoadOptions) (*Task, error) {
	extra, err := readExtras(o)
	if err != nil {
		return nil, err
	}
	t, err := open(dir)
	if err != nil {
		return nil, err
	}
	t.extra = extra
	if err := t.check(); err != nil {
		return nil, err
	}
	if !t.Config.HasSteps() {
		if t.Instruction, err = t.instruction(filepath.Join(t.Dir, "instruction.md")); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// open reads and validates task.toml, nothing else.
func open(dir string) (*Task, error) {
	abs, err := resolve(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(abs, configFile)
	data, err := readBounded(path, maxConfigSize)
	if err != nil {
		return nil, err
	}
	t := &Task{Dir: abs}
	if t.Config, t.Report, err = ParseConfig(data); err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, err)
	}
	t.Name = filepath.Base(abs)
	t.ShortName = t.Name
	if t.Config.Task != nil {
		t.Name = t.Config.Task.Name
		_, t.ShortName, _ = strings.Cut(t.Name, "/")
	}
	return t, nil
}

// resolve makes a path absolute and follows its links as far as it exists,
// like Python's Path.resolve.
func resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", osError(path, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	switch {
	case err == nil:
		return real, nil
	case errors.Is(err, fs.ErrNotExist):
		return abs, nil
	}
	return "", osError(abs, err)
}

// check applies what loading requires of the files (section 1.4, step 4).
func (t *Task) check() error {
	if t.Config.HasSteps() {
		for i := range t.Config.Steps {
			if err := t.checkStep(&t.Config.Steps[i]); err != nil {
				return err
			}
		}
		return t.checkStepTests()
	}
	if !exists(filepath.Join(t.Dir, "instruction.md")) {
		return exception.Errorf(exception.FileNotFoundError, "Task directory %s is missing instruction.md.", t.Dir)
	}
	os := t.Config.Environment.OS
	if t.Config.VerifierMode(nil) == Shared && !exists(filepath.Join(t.TestsDir(), os.TestScript())) {
		return exception.Errorf(exception.FileNotFoundError, "Task directory %s declares [environment].os = '%s' but does not contain tests/%s.",
			t.Dir, os, os.TestScript())
	}
	return nil
}

func (t *Task) checkStep(step *Step) error {
	dir := t.StepDir(step.Name)
	if !exists(dir) {
		return exception.Errorf(exception.FileNotFoundError, "Step directory not found: %s", dir)
	}
	if path := pyJoin(dir, "instruction.md"); !exists(path) {
		return exception.Errorf(exception.FileNotFoundError, "Step instruction not found: %s", path)
	}
	return nil
}

// checkStepTests requires of each step that the task's own environment
// verifies a test script of its own or of the task.
func (t *Task) checkStepTests() error {
	os := t.Config.Environment.OS
	for i := range t.Config.Steps {
		step := &t.Config.Steps[i]
		if t.Config.VerifierMode(step) != Shared || t.TestScript(step) != "" {
			continue
		}
		return exception.Errorf(exception.FileNotFoundError, "Task directory %s declares [environment].os = '%s' but step '%s' does not contain "+
			"an OS-compatible test script. Expected steps/%s/tests/%s or tests/%s.",
			t.Dir, os, step.Name, step.Name, os.TestScript(), os.TestScript())
	}
	return nil
}

// EnvironmentDir is where the environment is defined.
func (t *Task) EnvironmentDir() string { return filepath.Join(t.Dir, "environment") }

// TestsDir holds the tests of the task.
func (t *Task) TestsDir() string { return filepath.Join(t.Dir, "tests") }

// SolutionDir holds the solution, if there is one.
func (t *Task) SolutionDir() string { return filepath.Join(t.Dir, "solution") }

// StepDir is the directory of a step. Its name is used as it is, so it may
// lead out of the task.
func (t *Task) StepDir(name string) string { return pyJoin(t.Dir, "steps", name) }

// TestScript returns the path of the verifier's entry for the environment's
// system: the step's own if there is one, else the task's, else nothing. step
// may be nil.
func (t *Task) TestScript(step *Step) string {
	name := t.Config.Environment.OS.TestScript()
	if step != nil {
		if own := pyJoin(t.StepDir(step.Name), "tests", name); exists(own) {
			return own
		}
	}
	if path := filepath.Join(t.TestsDir(), name); exists(path) {
		return path
	}
	return ""
}

// SolutionScript returns the path of the solution's entry for a step (section
// 6.5): in the step's solution directory if that exists, else in the task's.
// The file need not exist. step may be nil.
func (t *Task) SolutionScript(step *Step) string {
	name := t.Config.Environment.OS.SolutionScript()
	if step != nil {
		if dir := pyJoin(t.StepDir(step.Name), "solution"); isDir(dir) {
			return filepath.Join(dir, name)
		}
	}
	return filepath.Join(t.SolutionDir(), name)
}

// VerifierDir returns the build context of a separate verifier's environment
// (section 6.4). step may be nil.
func (t *Task) VerifierDir(step *Step) string {
	if step != nil {
		if dir := pyJoin(t.StepDir(step.Name), "tests"); isDir(dir) {
			return dir
		}
	}
	return t.TestsDir()
}

// HasDefinition reports whether the task says how its environment is made: by
// an image, a Dockerfile or a compose file (section 5.2). Without, the error
// is that of an environment that cannot be constructed.
func (t *Task) HasDefinition() error {
	image := t.Config.Environment.DockerImage
	if image != nil && *image != "" || t.HasDockerfile() || t.HasCompose() {
		return nil
	}
	return exception.Errorf(exception.FileNotFoundError, "Task environment directory %s has no environment definition. "+
		"Expected environment/Dockerfile, environment/docker-compose.yaml or [environment].docker_image.", t.EnvironmentDir())
}

// Files that define an environment, in its directory. Only these names count
// (section 5.2).
const (
	Dockerfile  = "Dockerfile"
	ComposeFile = "docker-compose.yaml"
)

// Has reports whether a directory of a task has something of that name, whatever
// it is.
func Has(dir, name string) bool { return exists(filepath.Join(dir, name)) }

// HasDockerfile reports whether environment/ has a Dockerfile.
func (t *Task) HasDockerfile() bool { return Has(t.EnvironmentDir(), Dockerfile) }

// HasCompose reports whether environment/ has a compose file.
func (t *Task) HasCompose() bool { return Has(t.EnvironmentDir(), ComposeFile) }

// pyJoin joins paths as Python's pathlib does: ".." stays, and an absolute
// part replaces what came before.
func pyJoin(base string, parts ...string) string {
	for _, part := range parts {
		if strings.HasPrefix(part, "/") {
			base = part
			continue
		}
		base += "/" + part
	}
	return schema.CleanPath(base)
}

// exists follows links and accepts anything that is there, as Harbor does.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// readBounded reads a regular file of at most limit bytes. A device or a pipe
// in a task could block the reader or never end.
func readBounded(path string, limit int64) ([]byte, error) {
	if isDir(path) {
		return nil, osError(path, &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR})
	}
	data, err := bounded.ReadRegular(path, limit)
	if err != nil {
		return nil, osError(path, err)
	}
	return data, nil
}

// isInvalid tells errors that make a directory no valid task from those that
// Harbor lets escape (section 1.3, rule 2).
func isInvalid(err error) bool {
	if _, ok := errors.AsType[*toml.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*schema.Errors](err); ok {
		return true
	}
	if _, ok := errors.AsType[*exception.Error](err); ok {
		return true
	}
	return !errors.Is(err, value.UnicodeDecodeError)
}
