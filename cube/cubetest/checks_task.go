package cubetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/value"
)

// checkConstruction: a made task has its tool, the cube's types have no hook that
// is never called, and what was launched for a task that cannot be made is
// stopped.
func checkConstruction(ctx context.Context, c *conformance) error {
	if err := configHooks(c.Config); err != nil {
		return err
	}
	return c.withConfig(ctx, func(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig) error {
		err := c.inTask(ctx, b, cfg, func(t *cube.Task) error {
			if t.Tool() == nil {
				return errors.New("the task has no tool after construction")
			}
			return errors.Join(problemHooks(t.Problem()), taskConfigHooks(cfg))
		})
		if err != nil {
			return err
		}
		cfg.Common().ToolConfig = &brokenTool{}
		task, err := c.make(ctx, b, cfg)
		if err == nil { // the cube builds its tool without the tool config
			return errors.Join(task.Close(ctx), c.leftovers())
		}
		if left := c.leftovers(); left != nil {
			return fmt.Errorf("after a construction that failed: %w", left)
		}
		return nil
	})
}

// checkReset: Reset states the objective as text, can be repeated, and brings
// back the state it brought the first time.
func checkReset(ctx context.Context, c *conformance) error {
	return c.withConfig(ctx, func(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig) error {
		return c.inTask(ctx, b, cfg, func(t *cube.Task) error {
			fresh, err := c.resetState(ctx, t)
			if err != nil {
				return err
			}
			if _, err := c.work(ctx, t, cfg); err != nil {
				return err
			}
			again, err := c.resetState(ctx, t)
			if err != nil {
				return fmt.Errorf("second Reset: %w", err)
			}
			if fresh != again {
				return fmt.Errorf("a Reset does not bring back the start: after it Evaluate gave\n%s\nand after an episode and another Reset\n%s", fresh, again)
			}
			return nil
		})
	})
}

// resetState resets and returns how the start is scored, as text.
func (c *conformance) resetState(ctx context.Context, t *cube.Task) (string, error) {
	obs, _, err := t.Reset(ctx)
	if err != nil {
		return "", fmt.Errorf("resetting: %w", err)
	}
	if !slices.ContainsFunc(obs.Contents, isText) {
		return "", errors.New("the first observation has no text: the objective must be in it")
	}
	return evaluation(ctx, t, c.VolatileInfo...)
}

func isText(c cube.Content) bool {
	text, ok := c.(*cube.TextContent)
	return ok && strings.TrimSpace(text.Data) != ""
}

// evaluation evaluates without an observation and returns the result as text,
// without what is under some keys of the info.
func evaluation(ctx context.Context, t *cube.Task, without ...string) (string, error) {
	reward, info, err := t.Evaluate(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("evaluating without an observation: %w", err)
	}
	shown := info.Clone()
	for _, key := range without {
		if shown.Has(key) {
			shown.Set(key, cube.Str("(not compared)"))
		}
	}
	return fmt.Sprintf("reward %v, info %s", reward, value.AppendPydantic(nil, shown, 0)), nil
}

// work plays an episode of the debug agent, after a Reset.
func (c *conformance) work(ctx context.Context, t *cube.Task, cfg cube.TaskConfig) (last *cube.EnvironmentOutput, err error) {
	agent := c.Agent(cfg)
	obs := &cube.Observation{}
	for range c.maxSteps() {
		actions, err := ask(ctx, agent, t, obs)
		if err != nil {
			return nil, fmt.Errorf("asking the debug agent: %w", err)
		}
		if len(actions) == 0 {
			return last, nil
		}
		out, err := t.Step(ctx, actions...)
		if err != nil {
			return nil, fmt.Errorf("step with %s: %w", names(actions), err)
		}
		last = out
		if out.Done {
			return last, nil
		}
		obs = out.Obs
	}
	return last, nil
}

func names(actions []cube.Action) string {
	var all []string
	for _, a := range actions {
		all = append(all, a.Name)
	}
	return strings.Join(all, ", ")
}

// checkResetReproducible: two tasks of one config begin with the same
// observation.
func checkResetReproducible(ctx context.Context, c *conformance) error {
	return c.withConfig(ctx, func(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig) error {
		return sameFirstObservation(ctx, b, cfg)
	})
}

// checkActionSet: there are actions, and a model can make sense of them.
func checkActionSet(ctx context.Context, c *conformance) error {
	return c.withReset(ctx, func(ctx context.Context, t *cube.Task) error {
		actions := t.ActionSet() //nolint:contextcheck // an action set has no context
		if msg := checkToolsList(actions); msg != "" {
			return errors.New(msg)
		}
		var errs []error
		seen := map[string]bool{}
		for _, a := range actions {
			if err := checkAction(a); err != nil {
				errs = append(errs, fmt.Errorf("action %q: %w", a.Name, err))
			}
			if seen[a.Name] {
				errs = append(errs, fmt.Errorf("action %q is there twice", a.Name))
			}
			seen[a.Name] = true
		}
		return errors.Join(errs...)
	})
}

func checkAction(a cube.ActionSchema) error {
	if err := a.CheckName(); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(a.Description) == "":
		return errors.New("no description")
	case a.Name == cube.StopName:
		return errors.New("the stop action is not part of the action set: what drives the agent adds it")
	}
	if kind, _ := a.Parameters.Get("type"); kind != cube.Value(cube.Str("object")) {
		return errors.New("parameters are not a JSON schema of type object")
	}
	return a.CheckDescriptions()
}

// noSuchAction is a name that no cube has.
const noSuchAction = "cubetest_no_such_action"

// checkUnknownAction: an action that does not exist is an error of Step, and the
// task can still be closed.
func checkUnknownAction(ctx context.Context, c *conformance) error {
	return c.withReset(ctx, func(ctx context.Context, t *cube.Task) error {
		if _, err := t.Step(ctx, cube.NewAction(noSuchAction)); err == nil {
			return fmt.Errorf("a step with an unknown action, %q, gave no error", noSuchAction)
		}
		return nil
	})
}

// checkStop: a task that accepts the stop action ends with it; one that does not
// hands it to the tool.
func checkStop(ctx context.Context, c *conformance) error {
	return c.withReset(ctx, func(ctx context.Context, t *cube.Task) error {
		out, err := t.Step(ctx, cube.Stop())
		if !t.AcceptsStop() {
			if err == nil && out.Done && out.Error == nil && !slices.ContainsFunc(t.Tool().Actions(), isStop) {
				return errors.New("the stop action ended a task that does not accept it and whose tool does not have it")
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("stopping at once: %w", err)
		}
		if !out.Done || out.Error != nil {
			return fmt.Errorf("the stop action did not end the task: done %v, error %v", out.Done, out.Error)
		}
		return nil
	})
}

func isStop(a cube.ActionSchema) bool { return a.Name == cube.StopName }

// checkStepOutput: what every step returns can be written, read again and
// has the timings.
func checkStepOutput(ctx context.Context, c *conformance) error {
	return c.withConfig(ctx, func(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig) error {
		return c.inTask(ctx, b, cfg, func(t *cube.Task) error {
			obs, _, err := t.Reset(ctx)
			if err != nil {
				return fmt.Errorf("resetting: %w", err)
			}
			agent := c.Agent(cfg)
			for i := range c.maxSteps() {
				actions, err := ask(ctx, agent, t, obs)
				if err != nil {
					return fmt.Errorf("asking the debug agent: %w", err)
				}
				if len(actions) == 0 {
					return nil
				}
				out, err := t.Step(ctx, actions...)
				if err != nil {
					return fmt.Errorf("step %d with %s: %w", i+1, names(actions), err)
				}
				if err := c.checkOutput(out); err != nil {
					return fmt.Errorf("output of step %d: %w", i+1, err)
				}
				if out.Done {
					break
				}
				obs = out.Obs
			}
			return nil
		})
	})
}

func (c *conformance) checkOutput(out *cube.EnvironmentOutput) error {
	if math.IsNaN(out.Reward) || math.IsInf(out.Reward, 0) {
		return fmt.Errorf("reward %v cannot be written", out.Reward)
	}
	if out.Truncated {
		return errors.New("truncated is set: limits are not the task's business")
	}
	v, _ := out.FullInfo().Get("profiling")
	profiling, ok := v.(*cube.Object)
	if !ok {
		return errors.New("info has no profiling")
	}
	if !profiling.Has("obs_postprocess") {
		return errors.New("the profiling lacks obs_postprocess")
	}
	if out.Done && !profiling.Has("evaluate") {
		return errors.New("the task is done and was not evaluated")
	}
	return roundTrip(c.reg, out)
}

// checkEvaluatePure: Evaluate needs no observation, and asking twice gives the
// same answer, before and after an episode.
func checkEvaluatePure(ctx context.Context, c *conformance) error {
	return c.withConfig(ctx, func(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig) error {
		return c.inTask(ctx, b, cfg, func(t *cube.Task) error {
			if _, _, err := t.Reset(ctx); err != nil {
				return fmt.Errorf("resetting: %w", err)
			}
			if err := evaluateTwice(ctx, t); err != nil {
				return err
			}
			last, err := c.work(ctx, t, cfg)
			if err != nil {
				return err
			}
			return errors.Join(finalReward(ctx, t, last), evaluateTwice(ctx, t))
		})
	})
}

// finalReward checks that what the last step saw is worth the reward of that
// step: runners take it for the task's result. Where the observation was changed
// after it was scored, that cannot be asked.
func finalReward(ctx context.Context, t *cube.Task, last *cube.EnvironmentOutput) error {
	if _, changed := t.Problem().(cube.ObsPostprocessor); changed || last == nil || !last.Done {
		return nil
	}
	reward, _, err := t.Evaluate(ctx, last.Obs)
	if err != nil {
		return fmt.Errorf("evaluating what the last step saw: %w", err)
	}
	if reward != last.Reward {
		return fmt.Errorf("the last step gave reward %v, and evaluating what it saw gives %v", last.Reward, reward)
	}
	return nil
}

func evaluateTwice(ctx context.Context, t *cube.Task) error {
	first, err := evaluation(ctx, t)
	if err != nil {
		return err
	}
	second, err := evaluation(ctx, t)
	if err != nil {
		return err
	}
	if first != second {
		return fmt.Errorf("evaluating twice gave\n%s\nand\n%s", first, second)
	}
	return nil
}

// checkClose: closing twice is fine, also after a Reset that could not work, and
// leaves nothing running.
func checkClose(ctx context.Context, c *conformance) error {
	return c.withConfig(ctx, func(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig) error {
		for _, breakReset := range []bool{false, true} {
			task, err := c.make(ctx, b, cfg)
			if err != nil {
				return fmt.Errorf("making it: %w", err)
			}
			rctx, cancel := context.WithCancel(ctx)
			if breakReset { // in the middle of it, if it takes that long
				rctx, cancel = context.WithTimeout(ctx, time.Millisecond)
			}
			_, _, _ = task.Reset(rctx) // whether it works does not matter here
			cancel()
			for _, which := range []string{"first", "second"} {
				if err := task.Close(ctx); err != nil {
					return fmt.Errorf("%s Close: %w", which, err)
				}
			}
			if err := c.leftovers(); err != nil {
				return fmt.Errorf("after Close: %w", err)
			}
		}
		return nil
	})
}

// checkPrivilegedInfo: what judges may see can be shown and written.
func checkPrivilegedInfo(ctx context.Context, c *conformance) error {
	return c.withReset(ctx, func(ctx context.Context, t *cube.Task) error {
		info, err := t.PrivilegedInfo(ctx)
		if err != nil {
			return err
		}
		if _, err := info.Markdown(); err != nil {
			return err
		}
		if _, err := cube.Message(info); err != nil {
			return err
		}
		return roundTrip(c.reg, info)
	})
}
