package harbor

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/shellword"
)

// maxScriptSize is the largest script whose lines are looked at.
const maxScriptSize = 1 << 20

// checkLimits warns of time limits that leave a phase no time.
func (v *validation) checkLimits() {
	c := &v.task.Config
	defaultLimit := strconv.Itoa(DefaultTimeoutSec) + " seconds"
	v.checkLimit("agent.timeout_sec", c.Agent.TimeoutSec, "no limit")
	v.checkLimit("verifier.timeout_sec", &c.Verifier.TimeoutSec, defaultLimit)
	v.checkLimit("environment.build_timeout_sec", &c.Environment.BuildTimeoutSec, defaultLimit)
	if v.lostSteps() {
		return // their places are not known
	}
	for i := range c.Steps {
		step := &c.Steps[i]
		v.checkLimit(fmt.Sprintf("steps.%d.agent.timeout_sec", i), step.Agent.TimeoutSec, "the task's limit")
		v.checkLimit(fmt.Sprintf("steps.%d.verifier.timeout_sec", i), &step.Verifier.TimeoutSec, defaultLimit)
	}
}

func (v *validation) checkLimit(key string, sec *float64, without string) {
	if sec == nil || !NoTime(*sec) {
		return
	}
	v.add(SeverityWarning, "task.toml", key, "%v seconds leave no time, and no run takes the task; want more than 0, or leave it out for %s", *sec, without)
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
