package taskcheck

import (
	"fmt"
	"math"
	"slices"
	"strings"

	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// Outcome is what the trials of one task came to.
type Outcome struct {
	// Goal is the reward that the solution should get.
	Goal float64
	// Reference are the trials of the solution and of no work.
	Reference []Trial
	// Offline is nil where it was not run; Reach and NoOffline say how it was,
	// or why not.
	Offline   *Trial
	Reach     Reach
	NoOffline string
	// Channel are the attempts on the reward, Sealed whether the verifier was
	// closed to them.
	Channel []Trial
	Sealed  bool
}

// tolerance is how far a reward may be off its goal: means of rewards round.
const tolerance = 1e-9

// JudgeReference adds what the solution and no work came to, and reports
// whether their environment could be made at all.
func JudgeReference(r *Report, o Outcome) (usable bool) {
	oracles := ofKind(o.Reference, KindOracle)
	nops := ofKind(o.Reference, KindNop)
	for _, t := range slices.Concat(oracles, nops) {
		if !began(t.Result) {
			r.Add(Check{
				Name: CheckOracle, Status: Fail, Trials: []string{t.Name},
				Message: "the environment cannot be made: " + exceptionText(t.Result),
				Fix:     "read trial.log of the trial; 'proctor doctor' lists which environments work here",
			})
			return false
		}
	}
	judgeOracle(r, oracles, o.Goal)
	judgeNop(r, nops)
	judgeRepeats(r, oracles)
	r.Phases = phases(oracles)
	return true
}

// began reports whether the agent was reached.
func began(r *jobdir.TrialResult) bool { return r.AgentExecution != nil || len(r.StepResults) > 0 }

// Solved reports whether the solution got what it should in every trial.
func Solved(o Outcome) bool {
	return !slices.ContainsFunc(ofKind(o.Reference, KindOracle), func(t Trial) bool { return !reaches(t.Result, o.Goal) })
}

func ofKind(trials []Trial, kind Kind) []Trial {
	var out []Trial
	for _, t := range trials {
		if t.Role.Kind == kind {
			out = append(out, t)
		}
	}
	return out
}

func names(trials []Trial) []string {
	out := make([]string, len(trials))
	for i, t := range trials {
		out[i] = t.Name
	}
	return out
}

func rewardsOf(r *jobdir.TrialResult) *reward.Rewards {
	if r.VerifierResult == nil {
		return nil
	}
	return r.VerifierResult.Rewards
}

// reaches reports whether a trial has the reward; having none counts as 0.
func reaches(r *jobdir.TrialResult, goal float64) bool {
	x, err := harborcube.ScalarReward(rewardsOf(r))
	return err == nil && math.Abs(x-goal) <= tolerance
}

func judgeOracle(r *Report, oracles []Trial, goal float64) {
	want := value.FloatRepr(goal)
	wrong, without := -1, -1
	for i, t := range oracles {
		switch {
		case !reaches(t.Result, goal):
			wrong = i
		case rewardsOf(t.Result) == nil:
			without = i
		}
	}
	c := Check{Name: CheckOracle, Trials: names(oracles), Status: Pass}
	switch {
	case wrong >= 0:
		c.Status = Fail
		c.Message = fmt.Sprintf("the solution gets %s instead of %s%s", outcomeText(oracles[wrong].Result), want, solutionExit(oracles[wrong]))
		c.Fix = "mend solution/solve.sh or the tests: agent/oracle.txt and verifier/test-stdout.txt of the trial have their output. A solution that should get less says so with oracle_reward under [metadata]"
	case without >= 0:
		c.Status = Warn
		c.Message = fmt.Sprintf("no reward, which counts as the %s that oracle_reward names: %s", want, exceptionText(oracles[without].Result))
		c.Fix = "let the tests write a reward in every case: a missing one is an error, not a 0"
	default:
		c.Message = fmt.Sprintf("the solution gets %s in %d of %d runs", want, len(oracles), len(oracles))
		if exit := solutionExit(oracles[0]); exit != "" {
			c.Status, c.Message = Warn, c.Message+exit
			c.Fix = "mend solution/solve.sh: agent/oracle.txt of the trial has its output"
		}
	}
	r.Add(c)
}

func solutionExit(t Trial) string {
	if t.ExitCode == "" {
		return ""
	}
	return ", and its script exits with " + t.ExitCode
}

func judgeNop(r *Report, nops []Trial) {
	c := Check{Name: CheckNop, Trials: names(nops), Status: Pass, Message: "no work gets 0"}
	for _, t := range nops {
		switch {
		case !reaches(t.Result, 0):
			c.Status = Fail
			c.Message = "no work gets " + outcomeText(t.Result)
			c.Fix = "let the tests look for what the instruction asks for, and nothing that is there from the start"
		case rewardsOf(t.Result) == nil:
			c.Status = Warn
			c.Message = "no work gets no reward, which is an error of the trial: " + exceptionText(t.Result)
			c.Fix = "let the tests write a 0 when they fail; a trial without a reward is not counted as tried"
		}
	}
	r.Add(c)
}

func judgeRepeats(r *Report, oracles []Trial) {
	c := Check{Name: CheckRepeats, Trials: names(oracles), Status: Pass}
	if len(oracles) < 2 {
		c.Status, c.Message = Skip, "one run alone cannot differ"
		r.Add(c)
		return
	}
	c.Message = fmt.Sprintf("%d runs of the solution come to the same", len(oracles))
	first := oracles[0].Result
	for _, t := range oracles[1:] {
		if !score.SameRewards(rewardsOf(first), rewardsOf(t.Result)) || exceptionType(first) != exceptionType(t.Result) {
			c.Status = Fail
			c.Message = fmt.Sprintf("runs of the same solution differ: %s and %s", outcomeText(first), outcomeText(t.Result))
			c.Fix = "look for times, random numbers, the network, and processes that are still starting; compare verifier/test-stdout.txt of the trials"
		}
	}
	r.Add(c)
}

// outcomeText is the rewards of a trial, or why there are none.
func outcomeText(r *jobdir.TrialResult) string {
	rewards := rewardsOf(r)
	if rewards == nil {
		return "no reward (" + exceptionText(r) + ")"
	}
	if rewards.Len() != 1 {
		return value.Repr(rewards.Object())
	}
	for _, x := range rewards.All() {
		return value.Repr(x)
	}
	return ""
}

func exceptionType(r *jobdir.TrialResult) string {
	if x := exceptionOf(r); x != nil {
		return x.Type
	}
	return ""
}

// exceptionOf is the exception of a trial, or the first of its steps.
func exceptionOf(r *jobdir.TrialResult) *jobdir.ExceptionInfo {
	if r.ExceptionInfo != nil {
		return r.ExceptionInfo
	}
	for _, s := range r.StepResults {
		if s.ExceptionInfo != nil {
			return s.ExceptionInfo
		}
	}
	return nil
}

// maxException bounds what is shown of an exception's message, in bytes.
const maxException = 300

// exceptionText is the exception's type and the first line of its message.
func exceptionText(r *jobdir.TrialResult) string {
	x := exceptionOf(r)
	if x == nil {
		return "no exception"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(x.Message), "\n")
	if dir := r.Config.TrialsDir; dir != "" { // it is often a temporary one
		line = strings.ReplaceAll(line, dir+"/", "")
	}
	if len(line) > maxException {
		line = strings.ToValidUTF8(line[:maxException], "") + "…"
	}
	if line == "" {
		return x.Type
	}
	return x.Type + ": " + line
}
