package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/schema"
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

// taskReport is what task validate --json prints per task.
type taskReport struct {
	Task     string        `json:"task"`
	Valid    bool          `json:"valid"`
	Problems []taskProblem `json:"problems"`
}

// taskProblem is one thing that is wrong with a task.
type taskProblem struct {
	Severity string `json:"severity"` // error or warning
	File     string `json:"file"`     // below the task
	// Place is a key of task.toml, or "line L, column C".
	Place   string `json:"place,omitempty"`
	Message string `json:"message"`
}

const (
	severityError   = "error"
	severityWarning = "warning"
)

func (p taskProblem) String() string {
	where := p.File
	if p.Place != "" {
		where += ": " + p.Place
	}
	return fmt.Sprintf("%s: %s: %s", p.Severity, where, p.Message)
}

func (r *taskReport) add(severity, file, place, format string, args ...any) {
	r.Problems = append(r.Problems, taskProblem{severity, file, place, fmt.Sprintf(format, args...)})
	r.Valid = r.Valid && severity != severityError
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
		r := validateTask(dir)
		if !r.Valid {
			invalid++
		}
		if asJSON {
			if err := encodeJSON(env.Stdout, r); err != nil {
				return err
			}
			continue
		}
		printTaskReport(env.Stdout, r)
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

func validateTask(dir string) taskReport {
	r := taskReport{Task: dir, Valid: true, Problems: []taskProblem{}}
	t := &harbor.Task{Dir: dir, Config: harbor.DefaultConfig()}
	configured := r.readConfig(t)
	if !isDirectory(t.EnvironmentDir()) {
		r.add(severityError, "environment", "", "the directory is missing")
	} else if err := t.HasDefinition(); err != nil && configured {
		r.add(severityError, "environment", "", "nothing says how the environment is made: add a Dockerfile, a docker-compose.yaml or docker_image under [environment] in task.toml")
	}
	if configured {
		r.checkFiles(t)
	}
	if r.Valid {
		// What loading requires besides.
		if _, err := harbor.Load(dir, harbor.LoadOptions{}); err != nil {
			r.add(severityError, ".", "", "%v", err)
		}
	}
	return r
}

// readConfig reads task.toml and reports whether it could be.
func (r *taskReport) readConfig(t *harbor.Task) bool {
	const file = "task.toml"
	path := filepath.Join(t.Dir, file)
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		r.add(severityError, file, "", "it cannot be read: %v", err)
		return false
	}
	config, report, err := harbor.ParseConfig(data)
	for _, loc := range report.Unknown {
		r.add(severityWarning, file, loc.String(), "unknown key, it is ignored")
	}
	for _, w := range report.Warnings {
		r.add(severityWarning, file, w.Loc.String(), "%s", w.Text)
	}
	if err == nil {
		t.Config = config
		return true
	}
	if all, ok := errors.AsType[*schema.Errors](err); ok {
		for _, e := range all.List {
			r.add(severityError, file, e.Loc.String(), "%s", e.Msg)
		}
		return false
	}
	place := ""
	if syntax, ok := errors.AsType[*toml.Error](err); ok && syntax.Line > 0 {
		place = fmt.Sprintf("line %d, column %d", syntax.Line, syntax.Column)
	}
	r.add(severityError, file, place, "%v", err)
	return false
}

// checkFiles looks for the files that the configuration asks for.
func (r *taskReport) checkFiles(t *harbor.Task) {
	if !t.Config.HasSteps() {
		r.checkStep(t, nil, "")
		return
	}
	for i := range t.Config.Steps {
		step := &t.Config.Steps[i]
		r.checkStep(t, step, path.Join("steps", step.Name))
	}
}

// checkStep looks for the files of a step, or those of a task without steps.
func (r *taskReport) checkStep(t *harbor.Task, step *harbor.Step, base string) {
	instruction := path.Join(base, "instruction.md")
	if info, err := os.Stat(filepath.Join(t.Dir, filepath.FromSlash(instruction))); err != nil {
		r.add(severityError, instruction, "", "the instruction is missing")
	} else if info.Size() == 0 {
		r.add(severityWarning, instruction, "", "the instruction is empty")
	}
	os := t.Config.Environment.OS
	if t.Config.VerifierMode(step) == harbor.Shared && t.TestScript(step) == "" {
		r.add(severityError, path.Join(base, "tests", os.TestScript()), "", "the test script is missing")
	}
	if !isFile(t.SolutionScript(step)) {
		r.add(severityWarning, path.Join(base, "solution", os.SolutionScript()), "", "there is no solution: agent oracle cannot show that the task can be solved")
	}
}

func printTaskReport(w io.Writer, r taskReport) {
	if len(r.Problems) == 0 {
		_, _ = fmt.Fprintf(w, "%s: valid\n", clean(r.Task))
		return
	}
	for _, p := range r.Problems {
		text := strings.TrimRight(p.String(), "\n")
		_, _ = fmt.Fprintf(w, "%s: %s\n", clean(r.Task), clean(text))
	}
}
