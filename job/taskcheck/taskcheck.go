// Package taskcheck judges tasks by what trials of them come to: whether their
// solution gets what it should, whether no work gets nothing, whether the same
// work always gets the same, whether the tests need the network, and whether an
// agent can write its own reward.
//
// [Examine] judges a task's files. [Reference], [Offline] and [Channel] say which
// agents to run, [Agents] makes a job of them; [JudgeReference], [JudgeNetwork] and
// [JudgeChannel] read the results. [Course] is the order of it all; what runs the
// trials is given to it.
package taskcheck

import (
	"encoding/json"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// Kind is what a trial is run for.
type Kind string

// The kinds of trials.
const (
	KindOracle  Kind = "oracle"  // the task's solution
	KindNop     Kind = "nop"     // no work at all
	KindOffline Kind = "offline" // the solution, verified without network
	KindChannel Kind = "channel" // an attempt on the reward
)

// Role is what one trial of each task is run for.
type Role struct {
	Kind Kind
	// Attempt is the name of one of [Attempts], for [KindChannel].
	Attempt string
}

// Reference is the solution, repeats times, and no work.
func Reference(repeats int) []Role {
	var roles []Role
	for range repeats {
		roles = append(roles, Role{Kind: KindOracle})
	}
	return append(roles, Role{Kind: KindNop})
}

// Offline is the solution once more; what takes the network away is
// [TakeNetwork].
func Offline() []Role { return []Role{{Kind: KindOffline}} }

// Channel is one trial for each of the [Attempts].
func Channel() []Role {
	var roles []Role
	for _, a := range Attempts() {
		roles = append(roles, Role{Kind: KindChannel, Attempt: a.Name})
	}
	return roles
}

// Agents returns the agents of a job whose n-th trial of a task has the n-th
// role. The plan of such a job with one attempt lists for each task the trials
// of all roles, in order.
func Agents(roles []Role) []jobdir.AgentConfig {
	agents := make([]jobdir.AgentConfig, len(roles))
	for i, r := range roles {
		agents[i] = jobdir.NewAgentConfig()
		switch r.Kind {
		case KindOracle, KindOffline:
			agents[i].Name = new("oracle")
		case KindNop:
			agents[i].Name = new("nop")
		case KindChannel:
			agents[i].Name = new("command")
			agents[i].Kwargs = &value.Object{}
			agents[i].Kwargs.Set("run", value.Str(script(r.Attempt)))
		}
	}
	return agents
}

// Trial is one trial with what it left.
type Trial struct {
	Role   Role
	Name   string
	Result *jobdir.TrialResult
	// Output is what the agent's command printed, for KindChannel.
	Output string
	// ExitCode of the solution, empty for 0.
	ExitCode string
	// Suspicions that the trial's notes have of its reward.
	Suspicions []string
}

// Status is how a check ended.
type Status string

// The states, from best to worst but for Skip.
const (
	Pass Status = "pass"
	Warn Status = "warn" // works, but should be known
	Fail Status = "fail" // the task's rewards cannot be relied on
	Skip Status = "skip" // could not be found out
)

// Names of the checks.
const (
	CheckFiles   = "files"
	CheckOracle  = "oracle"
	CheckNop     = "nop"
	CheckRepeats = "repeats"
	CheckNetwork = "network"
	CheckChannel = "reward channel"
)

// Check is one judgement.
type Check struct {
	Name    string `json:"check"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	// Fix says what to do about it; empty for Pass.
	Fix string `json:"fix,omitempty"`
	// Trials that the judgement rests on, by name.
	Trials []string `json:"trials"`
}

// Effect is what an attempt did to the reward, against that of no work.
type Effect string

// The effects.
const (
	EffectNone    Effect = "none"
	EffectForged  Effect = "forged"  // the reward is the one that was planted
	EffectChanged Effect = "changed" // the reward is another one than for no work
	EffectLost    Effect = "lost"    // there is no reward, where no work has one
)

// AttemptResult is the result of one attempt on the reward.
type AttemptResult struct {
	Name        string `json:"attempt"`
	Description string `json:"description"`
	// Done and Denied are what the sandbox allowed the agent and what not.
	Done   []string `json:"done"`
	Denied []string `json:"denied"`
	Effect Effect   `json:"effect"`
	// Rewards of the trial, null without any.
	Rewards json.RawMessage `json:"rewards"`
	// Noticed is what proctor.json of the trial says of it.
	Noticed   []string `json:"noticed"`
	Exception string   `json:"exception,omitempty"`
	Trial     string   `json:"trial"`
}

// Phase is how long a phase took in the trials of the solution, in seconds.
type Phase struct {
	Name    string  `json:"phase"`
	Trials  int     `json:"n_trials"`
	Median  float64 `json:"median_seconds"`
	Longest float64 `json:"longest_seconds"`
}

// Report is what is known of a task.
type Report struct {
	Task   string          `json:"task"`
	Passed bool            `json:"passed"`
	Checks []Check         `json:"checks"`
	Phases []Phase         `json:"phases"`
	Tried  []AttemptResult `json:"attempts"`
}

// Add appends a judgement; a failed one fails the report.
func (r *Report) Add(c Check) {
	if c.Trials == nil {
		c.Trials = []string{}
	}
	r.Checks = append(r.Checks, c)
	r.Passed = r.Passed && c.Status != Fail
}

// Worst is the worst state of the checks.
func (r *Report) Worst() Status {
	worst := Pass
	for _, c := range r.Checks {
		if c.Status == Fail || c.Status == Warn && worst == Pass {
			worst = c.Status
		}
	}
	return worst
}

// NewReport begins the report of a task.
func NewReport(task string) *Report {
	return &Report{Task: task, Passed: true, Checks: []Check{}, Phases: []Phase{}, Tried: []AttemptResult{}}
}
