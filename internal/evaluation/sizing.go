package evaluation

import (
	"math"
	"time"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/machine"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/ownrunner"
	"github.com/proctor-run/proctor/value"
)

// Limits of a trial whose task says nothing, and what a trial takes besides, in seconds
// (outcome mapping, section 11.2).
const (
	defaultAgentSec = 3600
	slackSec        = 900
)

// Needs are what the tasks of an evaluation say of the trials.
type Needs struct {
	Costs []ownrunner.Cost
	// Backstop is how long any trial may take as a whole.
	Backstop time.Duration
}

// NeedsOf reads the tasks. One that cannot be read needs what is needed by default; its
// trials fail.
func NeedsOf(tasks []Task, cfg jobdir.Config) Needs {
	n := Needs{Costs: make([]ownrunner.Cost, len(tasks))}
	longest := 0.0
	for i, t := range tasks {
		task, err := harbor.Load(t.Dir, harbor.LoadOptions{})
		if err != nil {
			longest = max(longest, defaultAgentSec+harbor.DefaultTimeoutSec)
			continue
		}
		n.Costs[i] = costOf(task)
		longest = max(longest, workSec(task, cfg))
	}
	if longest == 0 {
		longest = defaultAgentSec + harbor.DefaultTimeoutSec
	}
	n.Backstop = harbor.Seconds(longest + slackSec)
	return n
}

// ThisMachine is what this machine has. Where its memory is not known, that bounds
// nothing.
func ThisMachine() ownrunner.Machine {
	return ownrunner.Machine{CPUs: machine.CPUs(), TotalKiB: machine.MemoryKiB()}
}

func costOf(t *harbor.Task) ownrunner.Cost {
	e := t.Config.Environment
	return ownrunner.Cost{CPUs: float64(whole(e.CPUs)), MemoryMiB: whole(e.MemoryMB)}
}

// whole is a count, 0 for none; one beyond measure is as large as can be.
func whole(n *value.Int) int64 {
	return max(value.Clamp(n, math.MaxInt64), 0)
}

// workSec is how long agent and verifier may work on a task, all of its steps together.
func workSec(t *harbor.Task, cfg jobdir.Config) float64 {
	if !t.Config.HasSteps() {
		return stageSec(t, nil, cfg)
	}
	sum := 0.0
	for i := range t.Config.Steps {
		sum += stageSec(t, &t.Config.Steps[i], cfg)
	}
	return sum
}

func stageSec(t *harbor.Task, step *harbor.Step, cfg jobdir.Config) float64 {
	agent, verifier := defaultAgentSec*1.0, t.Config.VerifierTimeoutSec(step)
	if sec := t.Config.AgentTimeoutSec(step); sec != nil {
		agent = *sec
	}
	return limited(agent, cfg.AgentTimeoutMultiplier, cfg) + limited(verifier, cfg.VerifierTimeoutMultiplier, cfg)
}

func limited(sec float64, phase *float64, cfg jobdir.Config) float64 {
	if limit := (harbor.Timeout{Base: &sec, PhaseMultiplier: phase, Multiplier: cfg.TimeoutMultiplier}).Seconds(); limit != nil {
		return *limit
	}
	return sec
}
