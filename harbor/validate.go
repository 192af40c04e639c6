package harbor

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Severity says whether a problem keeps a task from being run.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning" // the task runs: unknown and deprecated keys, a missing solution
)

// Problem is one thing that is wrong with the files of a task.
type Problem struct {
	Severity Severity `json:"severity"`
	// File is below the task, with slashes.
	File string `json:"file"`
	// Place is a key of task.toml, or "line L, column C"; empty for the whole file.
	Place string `json:"place,omitempty"`
	// Message says what was found or what is expected.
	Message string `json:"message"`
}

// String is the problem on one line, unless its message has several.
func (p Problem) String() string {
	where := p.File
	if p.Place != "" {
		where += ": " + p.Place
	}
	return fmt.Sprintf("%s: %s: %s", p.Severity, where, p.Message)
}

// Validate finds every problem in the files of a task, where [Load] ends with the
// first. A task with invalid values is examined as far as its valid ones allow; of
// a task.toml that is no TOML only the first syntax error is found. It runs
// nothing.
//
// The order is that of the files: task.toml, environment, then each step. A task
// without a [SeverityError] can be loaded.
func Validate(dir string) []Problem {
	v := &validation{task: &Task{Dir: dir}, invalid: map[string]bool{}}
	parsed := v.readConfig()
	v.checkEnvironment(parsed)
	switch {
	case parsed && !v.invalid["steps"]:
		v.checkSteps()
	case !isDir(filepath.Join(dir, "steps")):
		v.checkInstruction("") // whatever task.toml is meant to say
	}
	if !v.failed {
		// What loading requires besides.
		if _, err := Load(dir, LoadOptions{}); err != nil {
			v.add(SeverityError, ".", "", "%v", err)
		}
	}
	return v.problems
}

// validation is one run of [Validate].
type validation struct {
	task     *Task
	invalid  map[string]bool // tables of task.toml that have invalid values; task.Config lacks them
	problems []Problem
	failed   bool // one of the problems is an error
}

func (v *validation) add(severity Severity, file, place, format string, args ...any) {
	v.problems = append(v.problems, Problem{severity, file, place, fmt.Sprintf(format, args...)})
	v.failed = v.failed || severity == SeverityError
}

// readConfig reads task.toml and reports whether it is TOML.
func (v *validation) readConfig() bool {
	const file = "task.toml"
	path := filepath.Join(v.task.Dir, file)
	data, err := bounded.ReadRegular(path, maxConfigSize)
	if err != nil {
		v.add(SeverityError, file, "", "it cannot be read: %v", err)
		return false
	}
	config, report, err := ParseConfig(data)
	for _, loc := range report.Unknown {
		v.add(SeverityWarning, file, loc.String(), "unknown key, it is ignored")
	}
	for _, w := range report.Warnings {
		v.add(SeverityWarning, file, w.Loc.String(), "%s", w.Text)
	}
	v.task.Config = config
	if err == nil {
		return true
	}
	if all, ok := errors.AsType[*schema.Errors](err); ok {
		for _, e := range all.List {
			v.add(SeverityError, file, e.Loc.String(), "%s", e.Msg)
		}
		return v.takeValid(data, all)
	}
	place := ""
	if syntax, ok := errors.AsType[*toml.Error](err); ok && syntax.Line > 0 {
		place = fmt.Sprintf("line %d, column %d", syntax.Line, syntax.Column)
	}
	v.add(SeverityError, file, place, "%v", err)
	return false
}

// takeValid reads task.toml again without the tables that have invalid values, and
// reports whether that gives a configuration.
func (v *validation) takeValid(data []byte, invalid *schema.Errors) bool {
	text, err := value.ReadText(data)
	if err != nil {
		return false
	}
	doc, err := toml.Decode(text)
	if err != nil {
		return false
	}
	for _, e := range invalid.List {
		if len(e.Loc) == 0 {
			return false
		}
		table, _ := e.Loc[0].(string)
		v.invalid[table] = true
		doc.Delete(table)
	}
	v.task.Config, _, err = schema.Validate[Config](doc, decodeConfig)
	return err == nil
}

func (v *validation) checkEnvironment(parsed bool) {
	if !isDir(v.task.EnvironmentDir()) {
		v.add(SeverityError, "environment", "", "the directory is missing")
		return
	}
	if err := v.task.HasDefinition(); err != nil && parsed && !v.invalid["environment"] {
		v.add(SeverityError, "environment", "",
			"nothing says how the environment is made: add a Dockerfile, a docker-compose.yaml or docker_image under [environment] in task.toml")
	}
}

// checkSteps looks for the files that the configuration asks for.
func (v *validation) checkSteps() {
	if !v.task.Config.HasSteps() {
		v.checkInstruction("")
		v.checkScripts(nil, "")
		return
	}
	for i := range v.task.Config.Steps {
		step := &v.task.Config.Steps[i]
		base := path.Join("steps", step.Name)
		v.checkInstruction(base)
		v.checkScripts(step, base)
	}
}

// checkInstruction looks at the instruction of a step, or of a task without steps.
func (v *validation) checkInstruction(base string) {
	file := path.Join(base, "instruction.md")
	full := filepath.Join(v.task.Dir, filepath.FromSlash(file))
	info, err := os.Stat(full)
	switch {
	case err != nil:
		v.add(SeverityError, file, "", "the instruction is missing")
		return
	case info.Size() == 0:
		v.add(SeverityWarning, file, "", "the instruction is empty")
		return
	}
	if _, err := readText(full); err != nil {
		v.add(SeverityError, file, "", "%v", err)
	}
}

// checkScripts looks for the scripts of a step, or of a task without steps. Their
// names follow from the system of the environment.
func (v *validation) checkScripts(step *Step, base string) {
	if v.invalid["environment"] {
		return
	}
	t := v.task
	system := t.Config.Environment.OS
	if !v.invalid["verifier"] && t.Config.VerifierMode(step) == Shared {
		tests := path.Join(base, "tests", system.TestScript())
		if script := t.TestScript(step); script == "" {
			v.add(SeverityError, tests, "", "the test script is missing")
		} else if !isRegular(script) {
			v.add(SeverityError, tests, "", "the test script is not a regular file")
		}
	}
	if info, err := os.Stat(t.SolutionScript(step)); err != nil || !info.Mode().IsRegular() {
		v.add(SeverityWarning, path.Join(base, "solution", system.SolutionScript()), "",
			"there is no solution: agent oracle cannot show that the task can be solved")
	}
}
