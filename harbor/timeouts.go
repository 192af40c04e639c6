package harbor

import (
	"math"
	"time"
)

// AgentSetupTimeoutSec is the time limit of an agent's set-up, in seconds,
// when the job names none.
const AgentSetupTimeoutSec = 360

// Timeout is what the time limit of one phase is computed from (section 4.7;
// Harbor job format, section 3.3). Times are in seconds.
type Timeout struct {
	// Base is the task's or the step's limit; nil is none.
	Base *float64
	// Override replaces Base, unless it is nil or 0.
	Override *float64
	// Max caps the limit, before the multiplier, unless it is nil or 0.
	Max *float64
	// PhaseMultiplier replaces Multiplier, unless it is nil.
	PhaseMultiplier *float64
	Multiplier      float64
}

// Seconds returns the limit; nil is none. Without a limit a maximum makes none.
func (t Timeout) Seconds() *float64 {
	base := t.Base
	if t.Override != nil && *t.Override != 0 {
		base = t.Override
	}
	if base == nil {
		return nil
	}
	limit := *base
	if t.Max != nil && *t.Max != 0 && *t.Max < limit {
		limit = *t.Max
	}
	if t.PhaseMultiplier != nil {
		limit *= *t.PhaseMultiplier
	} else {
		limit *= t.Multiplier
	}
	return &limit
}

// NoTime reports whether a limit ends a phase as it begins: it is not more than 0.
func NoTime(sec float64) bool { return !(sec > 0) }

// AgentTimeoutSec is the base of the agent's limit: the step's, else the
// task's. step may be nil.
func (c *Config) AgentTimeoutSec(step *Step) *float64 {
	if step != nil && step.Agent.TimeoutSec != nil {
		return step.Agent.TimeoutSec
	}
	return c.Agent.TimeoutSec
}

// VerifierTimeoutSec is the base of the verifier's limit. A step that names
// none has the default, not the task's. step may be nil.
func (c *Config) VerifierTimeoutSec(step *Step) float64 {
	if step != nil {
		return step.Verifier.TimeoutSec
	}
	return c.Verifier.TimeoutSec
}

// AgentUser is who the agent runs as: the step's user, else the task's; nil is
// the image's. step may be nil.
func (c *Config) AgentUser(step *Step) *User {
	if step != nil && step.Agent.User != nil {
		return step.Agent.User
	}
	return c.Agent.User
}

// VerifierUser is who the verifier runs as, like AgentUser.
func (c *Config) VerifierUser(step *Step) *User {
	if step != nil && step.Verifier.User != nil {
		return step.Verifier.User
	}
	return c.Verifier.User
}

// VerifierEnv is the unresolved environment of the tests: the task's table,
// then the step's, then the job's; later ones win. step may be nil.
func (c *Config) VerifierEnv(step *Step, job Env) Env {
	out := c.Verifier.Env.Clone()
	if step != nil {
		for k, v := range step.Verifier.Env.All() {
			out.Set(k, v)
		}
	}
	for k, v := range job.All() {
		out.Set(k, v)
	}
	return out
}

// Seconds converts seconds of a task file, within what a Duration can hold.
func Seconds(s float64) time.Duration {
	switch {
	case s <= 0 || math.IsNaN(s):
		return 0
	case s >= math.MaxInt64/float64(time.Second):
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}
