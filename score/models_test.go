package score_test

import (
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

func modelRecord(agent string, score, tokens, cost float64) jobdir.Record {
	r := jobdir.Record{AgentName: agent, Rewards: &reward.Rewards{}}
	r.Rewards.Set(reward.Name, value.Float(score))
	if tokens >= 0 {
		n := value.NewInt(int64(tokens))
		r.Usage.NInputTokens, r.Usage.NOutputTokens = &n, &n
	}
	if cost >= 0 {
		r.Usage.CostUSD = &cost
	}
	return r
}

func TestModelUse(t *testing.T) {
	t.Parallel()
	none := -1.0
	for _, c := range []struct {
		name                                string
		records                             []jobdir.Record
		trials, solved, uncounted, unpriced int
		perTrial, perSolved                 float64
	}{
		{"nothing", nil, 0, 0, 0, 0, none, none},
		{"agents without models", []jobdir.Record{modelRecord("oracle", 1, none, none)}, 0, 0, 0, 0, none, none},
		{"all is known", []jobdir.Record{modelRecord("tools", 1, 10, 0.25), modelRecord("tools", 0, 10, 0.75), modelRecord("oracle", 1, none, none)}, 2, 1, 0, 0, 0.5, 1},
		{"other agents tell too", []jobdir.Record{modelRecord("command", 0.5, 10, 1)}, 1, 0, 0, 0, 1, none},
		{"a cost is not known", []jobdir.Record{modelRecord("tools", 1, 10, 1), modelRecord("tools", 1, 10, none)}, 2, 2, 0, 1, none, none},
		{"nothing is known", []jobdir.Record{modelRecord("tools", 1, none, none)}, 1, 1, 1, 1, none, none},
		{"nothing was paid", []jobdir.Record{modelRecord("tools", 1, 10, 0)}, 1, 1, 0, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := score.NewModelUse(c.records, func(agent string) bool { return agent == "tools" })
			if m.Trials != c.trials || m.Solved != c.solved || m.Uncounted != c.uncounted || m.Unpriced != c.unpriced {
				t.Errorf("%+v", m)
			}
			for what, x := range map[string]struct {
				got  *float64
				want float64
			}{"a trial": {m.PerTrial(), c.perTrial}, "a solved one": {m.PerSolved(), c.perSolved}} {
				if (x.got == nil) != (x.want < 0) || x.got != nil && *x.got != x.want {
					t.Errorf("%s costs %v, want %g", what, x.got, x.want)
				}
			}
		})
	}
}
