package cubetest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/proctor-run/proctor/cube"
)

// checkDebugEpisode: the debug agent reaches reward 1.0 on every task, and an
// agent that does nothing does not.
func checkDebugEpisode(ctx context.Context, c *conformance) error {
	if err := c.episodes(ctx); err != nil {
		return err
	}
	return c.withConfig(ctx, c.checkIdle)
}

// episodes plays the debug episodes, one after the other.
func (c *conformance) episodes(ctx context.Context) error {
	return c.withBench(ctx, func(b *cube.Benchmark) error {
		configs, err := c.configs(b)
		if err != nil {
			return err
		}
		return c.bounded(ctx, len(configs), func(ctx context.Context) error {
			s := Suite{Agent: c.Agent, MaxSteps: c.maxSteps(), Workers: 1}
			o := Outcome{Reports: s.episodes(ctx, b, configs)}
			if err := o.each(c.reached, "did not reach "+c.goals(o.Reports)+" with the debug agent"); err != nil {
				return err
			}
			return c.leftovers()
		})
	})
}

// goals names the reward that the tasks should reach.
func (c *conformance) goals(reports []Report) string {
	for i := range reports {
		if c.goal(reports[i].TaskID) != 1 {
			return "its reward"
		}
	}
	return "reward 1.0"
}

// checkIdle looks at the scores of an agent that does nothing and of one that stops at
// once, where that is accepted.
func (c *conformance) checkIdle(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig) error {
	return c.inTask(ctx, b, cfg, func(t *cube.Task) error {
		obs, _, err := t.Reset(ctx)
		if err != nil {
			return fmt.Errorf("resetting: %w", err)
		}
		reward, _, err := t.Evaluate(ctx, obs)
		if err == nil && reward < 1 && t.AcceptsStop() {
			var out *cube.EnvironmentOutput
			if out, err = t.Step(ctx, cube.Stop()); err == nil {
				reward = out.Reward
			}
		}
		if err != nil {
			return fmt.Errorf("running the no-op agent: %w", err)
		}
		if reward >= 1 {
			return fmt.Errorf("an agent that does nothing gets reward %v", reward)
		}
		return nil
	})
}

// checkParallel: episodes that run at the same time do not disturb each other
// and leave the runtime context as it was set up. Run it with the race detector.
func checkParallel(ctx context.Context, c *conformance) error {
	return c.withBench(ctx, func(b *cube.Benchmark) error {
		configs, err := c.configs(b)
		if err != nil {
			return err
		}
		contexts := map[*cube.Benchmark]string{}
		for _, cfg := range configs {
			leaf := leafOf(b, cfg)
			contexts[leaf] = describe(leaf.RuntimeContext())
		}
		twice := slices.Concat(configs, configs)
		meet := newRendezvous(len(twice))
		s := Suite{Agent: meet.together(c.Agent), MaxSteps: c.maxSteps(), OnDone: func(Report) { meet.leave() }}
		var o Outcome
		err = c.bounded(ctx, len(configs), func(ctx context.Context) error {
			o.Reports = s.episodes(ctx, b, twice)
			return nil
		})
		if err != nil {
			return err
		}
		if err := o.each(c.reached, "did not reach "+c.goals(o.Reports)+" beside others"); err != nil {
			return err
		}
		for leaf := range maps.Keys(contexts) {
			rc := leaf.RuntimeContext()
			if keys := rc.Violations(); len(keys) > 0 {
				return fmt.Errorf("%s: something tried to set %v in the runtime context after setup", leaf.Name(), keys)
			}
			if after := describe(rc); after != contexts[leaf] {
				return fmt.Errorf("%s: the runtime context changed from %s to %s", leaf.Name(), contexts[leaf], after)
			}
		}
		return c.leftovers()
	})
}

// describe names the keys and the identities of what is under them.
func describe(rc cube.RuntimeContext) string {
	text := ""
	for _, key := range rc.Keys() {
		v, _ := rc.Get(key)
		if data, ok := v.(cube.Value); ok {
			text += fmt.Sprintf("%s=%s ", key, cube.PythonText(data))
			continue
		}
		text += fmt.Sprintf("%s=%T(%p) ", key, v, v)
	}
	return text
}
