package taskcheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// JudgeNetwork adds whether the tests need the network.
func JudgeNetwork(r *Report, o Outcome) {
	c := Check{Name: CheckNetwork, Status: Pass}
	t := o.Offline
	if t == nil {
		c.Status, c.Message = Skip, o.NoOffline
		if o.Reach == ReachNone && o.NoOffline == "" {
			c.Status, c.Message = Pass, "the verifier has no network as it is"
		}
		r.Add(c)
		return
	}
	c.Trials = []string{t.Name}
	if !began(t.Result) {
		c.Status, c.Message = Skip, "could not be tried: "+exceptionText(t.Result)
		r.Add(c)
		return
	}
	same := score.SameRewards(rewardsOf(t.Result), rewardsOf(ofKind(o.Reference, KindOracle)[0].Result))
	switch {
	case same && o.Reach == ReachVerifier:
		c.Message = "verification gives the same result offline"
	case same:
		c.Message = "solution and verification give the same result offline"
	case o.Reach == ReachVerifier:
		c.Status = Warn
		c.Message = "the tests need the network: without it the solution gets " + outcomeText(t.Result)
		c.Fix = "put what the tests fetch into the image, or say network_mode = \"public\" under [verifier], so that nobody is surprised"
	default:
		c.Status = Warn
		c.Message = fmt.Sprintf("the solution or the tests need the network (this environment can only take it from both): without it the solution gets %s%s",
			outcomeText(t.Result), solutionExit(*t))
		c.Fix = "put what they fetch into the image; an environment that can switch networks (see docs/networks.md) tells which of the two it is"
	}
	r.Add(c)
}

// JudgeChannel adds whether the agent can write its reward, judged against the
// reward of no work.
func JudgeChannel(r *Report, o Outcome) {
	c := Check{Name: CheckChannel, Status: Pass, Trials: names(o.Channel)}
	nops := ofKind(o.Reference, KindNop)
	if len(o.Channel) == 0 || len(nops) == 0 {
		c.Status, c.Message = Skip, "not tried"
		r.Add(c)
		return
	}
	open, unseen := 0, 0
	for _, t := range o.Channel {
		a := judgeAttempt(t, nops[0].Result)
		if a.Effect == EffectForged || a.Effect == EffectChanged {
			open++
			if len(a.Noticed) == 0 {
				unseen++
			}
		}
		r.Tried = append(r.Tried, a)
	}
	if open == 0 {
		c.Message = fmt.Sprintf("closed: none of %d attempts changed the reward", len(o.Channel))
		r.Add(c)
		return
	}
	c.Status = Warn
	c.Message = fmt.Sprintf("open: %d of %d attempts of an agent changed the reward, %d of them unnoticed by proctor.json", open, len(o.Channel), unseen)
	c.Fix = "give the task a verifier environment of its own: environment_mode = \"separate\" under [verifier]"
	if !o.Sealed {
		c.Fix = "run with --sealed-verifier, or " + c.Fix
	}
	r.Add(c)
}

func judgeAttempt(t Trial, nop *jobdir.TrialResult) AttemptResult {
	a := AttemptResult{Name: t.Role.Attempt, Trial: t.Name, Noticed: t.Suspicions, Rewards: json.RawMessage("null")}
	if a.Noticed == nil {
		a.Noticed = []string{}
	}
	for _, known := range Attempts() {
		if known.Name == a.Name {
			a.Description = known.Description
		}
	}
	a.Done, a.Denied = readOutput(t.Output)
	rewards := rewardsOf(t.Result)
	if rewards != nil {
		a.Rewards = value.AppendPydantic(nil, rewards.Object(), 0)
	}
	a.Exception = exceptionType(t.Result)
	a.Effect = effectOf(rewards, rewardsOf(nop))
	return a
}

func effectOf(got, nop *reward.Rewards) Effect {
	switch {
	case got == nil && nop == nil:
		return EffectNone
	case got == nil:
		return EffectLost
	case isPlanted(got):
		return EffectForged
	case score.SameRewards(got, nop):
		return EffectNone
	}
	return EffectChanged
}

// isPlanted reports whether a reward is the one that attempts write.
func isPlanted(r *reward.Rewards) bool {
	for _, x := range r.All() {
		if c, ordered := value.Compare(x, value.Float(planted)); ordered && c == 0 {
			return true
		}
	}
	return false
}

// phases are how long the parts of the trials took, those of all steps
// together.
func phases(trials []Trial) []Phase {
	kinds := []struct {
		name string
		of   func(r *jobdir.TrialResult) []*jobdir.Timing
	}{
		{"environment", func(r *jobdir.TrialResult) []*jobdir.Timing { return []*jobdir.Timing{r.EnvironmentSetup} }},
		{"agent", func(r *jobdir.TrialResult) []*jobdir.Timing {
			all := []*jobdir.Timing{r.AgentExecution}
			for _, s := range r.StepResults {
				all = append(all, s.AgentExecution)
			}
			return all
		}},
		{"verifier", func(r *jobdir.TrialResult) []*jobdir.Timing {
			all := []*jobdir.Timing{r.Verifier}
			for _, s := range r.StepResults {
				all = append(all, s.Verifier)
			}
			return all
		}},
	}
	list := []Phase{}
	for _, k := range kinds {
		var seconds []float64
		for _, t := range trials {
			if s, ok := total(k.of(t.Result)); ok {
				seconds = append(seconds, s)
			}
		}
		if len(seconds) > 0 {
			slices.Sort(seconds)
			list = append(list, Phase{Name: k.name, Trials: len(seconds), Median: median(seconds), Longest: seconds[len(seconds)-1]})
		}
	}
	return list
}

func total(timings []*jobdir.Timing) (seconds float64, ok bool) {
	for _, t := range timings {
		if t != nil && t.StartedAt != nil && t.FinishedAt != nil {
			seconds += t.FinishedAt.In(time.UTC).Sub(t.StartedAt.In(time.UTC)).Seconds()
			ok = true
		}
	}
	return seconds, ok
}

// median of sorted numbers.
func median(x []float64) float64 {
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}
