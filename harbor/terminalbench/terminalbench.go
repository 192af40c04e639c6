// Package terminalbench turns Terminal-Bench task directories into Harbor task
// directories.
//
// Begin with [Map]. A source is not trusted: nothing outside its directory is
// read, whatever its links and build contexts say.
//
// The rules are those of the Harbor task format, section 7.
package terminalbench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/taskpath"
	"github.com/proctor-run/proctor/value"
)

// maxTextSize bounds each file that is read as text, in bytes.
const maxTextSize = 16 << 20

// Options are choices for all tasks of a run.
type Options struct {
	// CPUs, MemoryMB, StorageMB and GPUs set resources of each environment; nil
	// leaves them out.
	CPUs, MemoryMB, StorageMB, GPUs *int
	// Atomic leaves nothing of a task that fails: each is made in a hidden
	// directory beside its place and moved there when it is complete. Without
	// it, what was written of a failed task stays, as it does in Harbor.
	Atomic bool
	// Print is called with each change; it may be nil.
	Print func(line string)
}

// Result lists the tasks of a run by name.
type Result struct {
	Mapped []string
	Failed []Failure
}

// Failure is a task that could not be mapped.
type Failure struct {
	Task string
	Err  error
}

// Map maps the task at in, or all tasks directly below it, to directories of
// the same names below out. A task that fails does not stop the others. An
// error means that there is no such source, or that ctx ended: the result then
// has what was done before, and no task is half done because of it.
func Map(ctx context.Context, in, out string, o Options) (Result, error) {
	var res Result
	info, err := os.Stat(in)
	if err != nil || !info.IsDir() {
		return res, &exception.Error{Type: exception.ValueError, Message: "Invalid source directory: " + in, Err: err}
	}
	names, parent, err := sources(in)
	if err != nil {
		return res, err
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return res, context.Cause(ctx)
		}
		t := &task{name: name, source: filepath.Join(parent, name), target: filepath.Join(out, name), options: o}
		if err := t.run(); err != nil {
			t.print("Failed to map task %s: %s", name, message(err))
			res.Failed = append(res.Failed, Failure{Task: name, Err: err})
			continue
		}
		res.Mapped = append(res.Mapped, name)
	}
	return res, nil
}

// sources lists the tasks at a path and the directory that they are in.
func sources(in string) (names []string, parent string, err error) {
	if isTask(in) {
		abs, err := filepath.Abs(in)
		return []string{filepath.Base(abs)}, filepath.Dir(abs), err
	}
	entries, err := os.ReadDir(in)
	if err != nil {
		return nil, "", fmt.Errorf("listing tasks: %w", err)
	}
	for _, entry := range entries {
		if isTask(filepath.Join(in, entry.Name())) {
			names = append(names, entry.Name())
		}
	}
	return names, in, nil
}

func isTask(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "task.yaml"))
	return err == nil
}

// message is the text of the exception that an error stands for.
func message(err error) string {
	if raised, ok := exception.Of(err); ok {
		return raised.Error()
	}
	return err.Error()
}

// task is the mapping of one task.
type task struct {
	name           string
	source, target string
	options        Options

	in, out *os.Root
	compose *compose
}

func (t *task) print(format string, args ...any) {
	if t.options.Print != nil {
		t.options.Print(fmt.Sprintf(format, args...))
	}
}

// run maps the task; the order of the steps decides what is there after a
// failure.
func (t *task) run() (err error) {
	if _, err := os.Lstat(t.target); err == nil {
		return exception.Errorf(exception.FileExistsError, "Task directory already exists: %s", t.target)
	}
	if t.in, err = os.OpenRoot(t.source); err != nil {
		return fmt.Errorf("opening the task: %w", err)
	}
	defer func() { err = errors.Join(err, t.in.Close()) }()
	if t.has("solution.yaml") {
		return exception.Errorf(exception.ValueError, "Task %s uses solution.yaml which is not supported. Please convert it to solution.sh.", t.name)
	}
	settings, err := t.readSettings()
	if err != nil {
		return err
	}
	if t.options.Atomic {
		return t.replace(settings)
	}
	return t.build(t.target, settings)
}

// replace builds the task beside its place and moves it there.
func (t *task) replace(s settings) (err error) {
	parent := filepath.Dir(t.target)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(parent, ".partial-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := t.build(dir, s); err != nil {
		return err
	}
	return os.Rename(dir, t.target)
}

// build writes the task to a directory.
func (t *task) build(target string, s settings) (err error) {
	for _, dir := range [...]string{"environment", "tests"} {
		if err := os.MkdirAll(filepath.Join(target, dir), 0o755); err != nil {
			return err
		}
	}
	if t.out, err = os.OpenRoot(target); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.out.Close()) }()
	for _, step := range [...]func() error{t.mapEnvironment, t.mapSolution, t.mapTests, t.copyRemaining} {
		if err := step(); err != nil {
			return err
		}
	}
	instruction := s.instruction
	if !strings.HasSuffix(instruction, "\n") {
		instruction += "\n"
	}
	if err := t.write("instruction.md", instruction); err != nil {
		return err
	}
	return t.write("task.toml", string(s.config(t.options).TOML()))
}

func (t *task) mapSolution() error {
	if !t.has("solution.sh") {
		return nil
	}
	if err := t.copyFile("solution.sh", "solution/solve.sh"); err != nil {
		return err
	}
	return t.makeExecutable("solution/solve.sh")
}

// rewardSuffix turns the exit code of the tests into a reward.
const rewardSuffix = `
_EXIT_CODE=$?
if [ $_EXIT_CODE -eq 0 ]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
exit $_EXIT_CODE
`

func (t *task) mapTests() error {
	if t.has("tests") {
		if err := t.copyTree("tests", "tests"); err != nil {
			return err
		}
	}
	script, err := t.read("run-tests.sh")
	if err != nil {
		return err
	}
	if !strings.HasSuffix(script, "\n") {
		script += "\n"
	}
	// The plain replacement leaves ${TEST_DIR} and takes any name that begins
	// like the variable's, as the format has it.
	script = strings.ReplaceAll(script+rewardSuffix, "$TEST_DIR", taskpath.Tests)
	if err := t.write("tests/test.sh", script); err != nil {
		return err
	}
	return t.makeExecutable("tests/test.sh")
}

// copyRemaining copies what no other step has taken to the environment.
func (t *task) copyRemaining() error {
	return t.walk(".", func(name string) error {
		first, _, _ := strings.Cut(name, "/")
		if t.compose.handles(first) {
			return nil
		}
		return t.copyFile(name, path.Join("environment", name))
	})
}

func (t *task) has(name string) bool {
	_, err := t.in.Stat(name)
	return err == nil
}

// read reads a text of the source, line ends as LF.
func (t *task) read(name string) (string, error) {
	data, err := bounded.ReadAt(t.in, name, maxTextSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		path := filepath.Join(t.source, name)
		return "", &exception.Error{
			Type: exception.FileNotFoundError, Message: "[Errno 2] No such file or directory: " + value.Repr(value.Str(path)),
			Plain: path + ": no such file or directory",
		}
	case err != nil:
		return "", fmt.Errorf("reading the task: %w", err)
	}
	return value.ReadText(data)
}
