package harbor

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/shellword"
	"github.com/proctor-run/proctor/schema"
)

// maxScriptSize is the largest script whose lines are looked at.
const maxScriptSize = 1 << 20

// LimitVariable is a variable that compose files get from a limit of the environment,
// if there is one.
type LimitVariable struct {
	Name string
	// Key is the limit's in [environment], Flag is of a run and replaces it.
	Key, Flag string
}

// LimitVariables are those of compose files (section 5.6).
func LimitVariables() []LimitVariable {
	return []LimitVariable{{"CPUS", "cpus", "--override-cpus"}, {"MEMORY", "memory_mb", "--override-memory-mb"}}
}

// Hint says how the variable gets a value.
func (l LimitVariable) Hint() string {
	return fmt.Sprintf("it gets a value from %s under [environment] in task.toml or from %s", l.Key, l.Flag)
}

// checkCompose warns of limits in the compose file that have no value: the engine
// takes no empty ones.
func (v *validation) checkCompose() {
	dir := v.task.EnvironmentDir()
	data, err := bounded.ReadRegular(filepath.Join(dir, ComposeFile), maxScriptSize)
	if err != nil {
		return
	}
	settings, _ := bounded.ReadRegular(filepath.Join(dir, ".env"), maxScriptSize)
	e := &v.task.Config.Environment
	for _, l := range LimitVariables() {
		n := e.CPUs
		if l.Name == "MEMORY" {
			n = e.MemoryMB
		}
		_, given := e.Env.Get(l.Name)
		if n != nil || given || v.lost("environment", l.Key) || v.lost("environment", "env") || definesVariable(settings, l.Name) {
			continue
		}
		if line := lineOfVariable(data, l.Name); line > 0 {
			v.add(SeverityWarning, "environment/"+ComposeFile, fmt.Sprintf("line %d", line), "${%s} is empty, which no engine takes for a limit: %s", l.Name, l.Hint())
		}
	}
}

// definesVariable reports whether an .env file names a variable.
func definesVariable(settings []byte, name string) bool {
	for line := range bytes.Lines(settings) {
		key, _, ok := bytes.Cut(bytes.TrimPrefix(bytes.TrimSpace(line), []byte("export ")), []byte("="))
		if ok && string(bytes.TrimSpace(key)) == name {
			return true
		}
	}
	return false
}

// composeVariable matches a variable of a compose file that has no default, and dollar
// signs that are escaped.
var composeVariable = regexp.MustCompile(`\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)

// lineOfVariable is the first line, outside of comments, on which a compose file uses a
// variable without a default; 0 for none.
func lineOfVariable(data []byte, name string) int {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) {
			continue
		}
		for _, m := range composeVariable.FindAllSubmatch(line, -1) {
			if string(m[1]) == name || string(m[2]) == name {
				return n
			}
		}
	}
	return 0
}

// checkLimits warns of time limits that leave a phase no time.
func (v *validation) checkLimits() {
	c := &v.task.Config
	defaultLimit := strconv.Itoa(DefaultTimeoutSec) + " seconds"
	v.checkLimit(schema.Location{"agent", "timeout_sec"}, c.Agent.TimeoutSec, "no limit")
	v.checkLimit(schema.Location{"verifier", "timeout_sec"}, &c.Verifier.TimeoutSec, defaultLimit)
	v.checkLimit(schema.Location{"environment", "build_timeout_sec"}, &c.Environment.BuildTimeoutSec, defaultLimit)
	if v.lostSteps() {
		return // their places are not known
	}
	for i := range c.Steps {
		step := &c.Steps[i]
		v.checkLimit(schema.Location{"steps", i, "agent", "timeout_sec"}, step.Agent.TimeoutSec, "the task's limit")
		v.checkLimit(schema.Location{"steps", i, "verifier", "timeout_sec"}, &step.Verifier.TimeoutSec, defaultLimit)
	}
}

func (v *validation) checkLimit(key schema.Location, sec *float64, without string) {
	if sec == nil || !NoTime(*sec) {
		return
	}
	v.addKey(SeverityWarning, key, "%v seconds leave no time: each trial would end at once; want more than 0, or leave it out for %s", *sec, without)
}

// checkLineEnds warns of a script for Linux whose lines end as on Windows: the
// interpreter of the first line is not found then, and commands get a carriage return.
func (v *validation) checkLineEnds(script string) {
	if filepath.Ext(script) != ".sh" || v.seen[script] {
		return
	}
	v.seen[script] = true
	data, err := bounded.ReadRegular(script, maxScriptSize)
	if err != nil {
		return
	}
	before, _, found := bytes.Cut(data, []byte("\r\n"))
	if !found {
		return
	}
	file := script
	if rel, err := filepath.Rel(v.task.Dir, script); err == nil {
		file = rel
	}
	v.add(SeverityWarning, filepath.ToSlash(file), fmt.Sprintf("line %d", bytes.Count(before, []byte("\n"))+1),
		"it ends with a carriage return, with which the script does not run in Linux: sed -i 's/\\r$//' %s", shellword.Quote(script))
}
