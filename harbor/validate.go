package harbor

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/proctor-run/proctor/exception"
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
	SeverityWarning Severity = "warning" // the task can be loaded: ignored keys, scripts that will not run, a missing solution
)

// Problem is one thing that is wrong with the files of a task.
type Problem struct {
	Severity Severity `json:"severity"`
	// File is below the task, with slashes.
	File string `json:"file"`
	// Place is a key of task.toml, or "line L, column C"; empty for the whole file.
	Place string `json:"place,omitempty"`
	// Line is that of a key, or of what it would be in, from 1; 0 for all else.
	Line int `json:"line,omitempty"`
	// Message says what was found or what is expected.
	Message string `json:"message"`
}

// String is the problem on one line, unless its message has several.
func (p Problem) String() string {
	where := p.File
	if p.Line > 0 {
		where += fmt.Sprintf(": line %d", p.Line)
	}
	if p.Place != "" {
		where += ": " + p.Place
	}
	return fmt.Sprintf("%s: %s: %s", p.Severity, where, p.Message)
}

// Validate finds every problem in the files of a task, where [Load] ends with the
// first. A task with invalid values is examined as far as its valid ones allow; of
// a task.toml that is no TOML only the first syntax error is found, and of the
// files what a task needs whatever its task.toml is meant to say. It runs nothing.
//
// The order is that of the files: task.toml, environment, then each step. A task
// without a [SeverityError] can be loaded.
func Validate(dir string) []Problem {
	v := &validation{task: &Task{Dir: dir}, seen: map[string]bool{}}
	v.readConfig()
	v.checkEnvironment()
	switch {
	case !v.lost("steps"):
		v.checkSteps()
	case !isDir(filepath.Join(dir, "steps")):
		v.checkStage(nil, "") // whatever task.toml is meant to say
	}
	if !v.failed {
		// What loading requires besides.
		if _, err := Load(dir, LoadOptions{}); err != nil {
			v.add(SeverityError, ".", "", "%s", exception.PlainText(err))
		}
	}
	return v.problems
}

// validation is one run of [Validate].
type validation struct {
	task *Task
	// written is what task.toml says, valid what is left of it without its invalid
	// values, of which task.Config is made. Both are nil where there is no such thing.
	written, valid *value.Object
	lines          toml.Lines      // of task.toml
	seen           map[string]bool // scripts, which steps may share
	problems       []Problem
	failed         bool // one of the problems is an error
}

func (v *validation) add(severity Severity, file, place, format string, args ...any) {
	v.keep(Problem{Severity: severity, File: file, Place: place, Message: fmt.Sprintf(format, args...)})
}

// addKey adds a problem of a key of task.toml.
func (v *validation) addKey(severity Severity, key schema.Location, format string, args ...any) {
	v.keep(Problem{severity, configFile, key.String(), v.lines.Of(key), fmt.Sprintf(format, args...)})
}

func (v *validation) keep(p Problem) {
	v.problems = append(v.problems, p)
	v.failed = v.failed || p.Severity == SeverityError
}

// configFile is where the configuration of a task is, below its directory.
const configFile = "task.toml"

// readConfig reads task.toml.
func (v *validation) readConfig() {
	const file = configFile
	path := filepath.Join(v.task.Dir, file)
	data, err := bounded.ReadRegular(path, maxConfigSize)
	if err != nil {
		v.add(SeverityError, file, "", "it cannot be read: %s", exception.PlainText(err))
		return
	}
	doc, lines, err := decodeDocument(data)
	var report schema.Report
	if err == nil {
		v.written, v.lines = doc, lines
		_, report, err = schema.Validate[Config](doc, decodeConfig)
	}
	for _, loc := range report.Unknown {
		v.addKey(SeverityWarning, loc, "unknown key, it is ignored")
	}
	for _, w := range report.Warnings {
		v.addKey(SeverityWarning, w.Loc, "%s", w.Text)
	}
	all, isSchema := errors.AsType[*schema.Errors](err)
	if err != nil && !isSchema {
		if syntax, ok := errors.AsType[*toml.Error](err); ok {
			v.add(SeverityError, file, syntax.Place(), "%v", err)
		} else {
			v.add(SeverityError, file, "", "%s", exception.PlainText(err))
		}
		return
	}
	if isSchema {
		for _, e := range all.List {
			v.addKey(SeverityError, e.Loc, "%s", e.Msg)
		}
	}
	v.takeValid()
	if v.valid != nil {
		v.checkLimits()
	}
}

func (v *validation) checkEnvironment() {
	if !isDir(v.task.EnvironmentDir()) {
		v.add(SeverityError, "environment", "", "the directory is missing")
		return
	}
	if err := v.task.HasDefinition(); err != nil && !v.lost("environment", "docker_image") {
		v.add(SeverityError, "environment", "",
			"nothing says how the environment is made: add a Dockerfile, a docker-compose.yaml or docker_image under [environment] in task.toml")
	}
	v.checkCompose()
}

// checkSteps looks for the files that the configuration asks for.
func (v *validation) checkSteps() {
	if !v.hadSteps() {
		v.checkStage(nil, "")
		return
	}
	for i := range v.task.Config.Steps {
		step := &v.task.Config.Steps[i]
		v.checkStage(step, path.Join("steps", step.Name))
	}
}

// checkStage looks for the files of a step, or of a task without steps.
func (v *validation) checkStage(step *Step, base string) {
	v.checkInstruction(base)
	v.checkTests(step, base)
	v.checkSolution(step, base)
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
		v.add(SeverityError, file, "", "%s", exception.PlainText(err))
	}
}

// systems are those that the environment may have: the one that task.toml says, or
// all where that is invalid. The names of the scripts follow from it.
func (v *validation) systems() []OS {
	if v.lost("environment", "os") {
		return []OS{Linux, Windows}
	}
	return []OS{v.task.Config.Environment.OS}
}

// on is the task for a system.
func (v *validation) on(system OS) *Task {
	t := *v.task
	t.Config.Environment.OS = system
	return &t
}

// checkTests looks for the test script, and at what there is of it.
func (v *validation) checkTests(step *Step, base string) {
	shared := v.task.Config.VerifierMode(step) == Shared
	systems := v.systems()
	tests := path.Join(base, "tests", systems[0].TestScript())
	for _, system := range systems {
		script := v.on(system).TestScript(step)
		if isRegular(script) {
			v.checkLineEnds(script)
			return
		}
		if script != "" && shared {
			v.add(SeverityError, tests, "", "the test script is not a regular file")
			return
		}
	}
	switch {
	case !shared:
	case v.lostMode(step):
		v.add(SeverityWarning, tests, "", "the test script is missing; only a task with a separate verifier needs none")
	default:
		v.add(SeverityError, tests, "", "the test script is missing")
	}
}

func (v *validation) checkSolution(step *Step, base string) {
	systems := v.systems()
	for _, system := range systems {
		if script := v.on(system).SolutionScript(step); isRegular(script) {
			v.checkLineEnds(script)
			return
		}
	}
	v.add(SeverityWarning, path.Join(base, "solution", systems[0].SolutionScript()), "",
		"there is no solution: agent oracle cannot show that the task can be solved")
}
