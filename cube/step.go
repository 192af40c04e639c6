package cube

import (
	"context"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/internal/dump"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// stopText is what an agent that stops sees.
const stopText = "Task finished by the agent."

// score is what evaluating gave.
type score struct {
	value Value // nil: number holds the reward
	num   float64
	info  Info
}

// reward reads the reward as a number.
func (s score) reward() (float64, error) {
	if s.value == nil {
		return s.num, nil
	}
	f, _, err := schema.Validate(Value(Pairs("reward", s.value)), schema.Model("EnvironmentOutput", func(f *schema.Fields) float64 {
		return schema.Required(f, "reward", schema.Float)
	}))
	return f, typed.Invalid("cube.core.EnvironmentOutput", err)
}

func (t *Task) evaluate(ctx context.Context, obs *Observation) (s score, err error) {
	err = t.hook(ctx, "Evaluate", func() (err error) {
		if v, ok := t.problem.(ValueEvaluator); ok {
			s.value, s.info, err = v.EvaluateValue(ctx, obs)
			if s.value == nil {
				s.value = Null{}
			}
			return err
		}
		s.num, s.info, err = t.problem.Evaluate(ctx, obs)
		return err
	})
	if err == nil {
		err = typed.CheckNesting("info of Evaluate", s.info)
	}
	return s, err
}

// Step executes actions in order and returns what became of the task (CUBE,
// section 4.4). A stop action, if the task accepts it, and an action that fails
// end the task and skip the actions after them. When the task has ended, or
// ValidatePerStep is set, it is evaluated. With LaterRules an action that fails
// does not end the task, and the actions after it are executed.
//
// Step is not atomic: what the actions before a failure did stays done. An
// error means that there is no output that counts: an unknown action, a tool or a
// hook that could not work. What the actions brought comes along where only
// finishing or evaluating failed, without a reward and as the agent would not see
// it; otherwise the output is nil. The task can still be evaluated and must still be closed.
func (t *Task) Step(ctx context.Context, actions ...Action) (*EnvironmentOutput, error) {
	ctx, err := t.turns.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer t.turns.Leave()
	out, err := t.act(ctx, actions)
	if err != nil {
		return out, err
	}
	return t.complete(ctx, out)
}

// Turn is a step of which the actions are done and the task has yet to be evaluated.
type Turn struct {
	task *Task
	out  *EnvironmentOutput
}

// TakeTurn is the first half of [Task.Step]: it executes the actions and finds out
// whether the task has ended. [Turn.Complete] is the second. Together they are one
// step, for a driver that gives acting and scoring a time limit each. Nothing else
// may be asked of the task in between. The errors are those of Step.
func (t *Task) TakeTurn(ctx context.Context, actions ...Action) (*Turn, error) {
	ctx, err := t.turns.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer t.turns.Leave()
	out, err := t.act(ctx, actions)
	if out == nil {
		return nil, err
	}
	return &Turn{task: t, out: out}, err
}

// Output is what the actions brought, without a reward and as the agent would not
// see it.
func (u *Turn) Output() *EnvironmentOutput { return u.out }

// Complete evaluates the task, where Step would, and returns what Step returns. It is
// called once.
func (u *Turn) Complete(ctx context.Context) (*EnvironmentOutput, error) {
	ctx, err := u.task.turns.Enter(ctx)
	if err != nil {
		return u.out, err
	}
	defer u.task.turns.Leave()
	return u.task.complete(ctx, u.out)
}

// act executes the actions. What they brought comes along with an error where only
// finding out whether the task has ended failed.
func (t *Task) act(ctx context.Context, actions []Action) (*EnvironmentOutput, error) {
	out := &EnvironmentOutput{Obs: &Observation{}, Profiling: &Profiling{}}
	if err := t.execute(ctx, out, actions); err != nil {
		return nil, err
	}
	f, ok := t.problem.(Finisher)
	if !ok || out.Done {
		return out, nil
	}
	err := t.hook(ctx, "Finished", func() (err error) {
		out.Done, err = f.Finished(ctx, out.Obs)
		return err
	})
	return out, err
}

// complete evaluates the task if it has ended, and makes the output what the agent
// sees.
func (t *Task) complete(ctx context.Context, out *EnvironmentOutput) (_ *EnvironmentOutput, err error) {
	var s score
	if out.Done || t.c.ValidatePerStep {
		start := t.now()
		if s, err = t.evaluate(ctx, out.Obs); err != nil {
			return out, err
		}
		took := t.now().Sub(start).Seconds()
		out.Profiling.Evaluate = &took
	}
	if err := t.postprocess(ctx, out); err != nil {
		return nil, err
	}
	if s.info != nil {
		out.Info = s.info.Clone() // the cube may go on using its own
	}
	out.Reward, err = s.reward()
	return out, err
}

func (t *Task) execute(ctx context.Context, out *EnvironmentOutput, actions []Action) error {
	for _, a := range actions {
		if a.Name == StopName && t.AcceptsStop() {
			if t.stop(out, a) {
				return nil
			}
			continue
		}
		start := t.now()
		var r Result
		err := t.hook(ctx, "Execute", func() (err error) {
			r, err = t.c.tool.Execute(ctx, a)
			return err
		})
		if err != nil {
			return err
		}
		out.Profiling.ToolExecute += t.now().Sub(start).Seconds()
		out.Profiling.Actions++
		if r.Err == nil && r.Obs == nil {
			return ValueErrorf("Unknown result type from calling action %s with args %s: got NoneType, expected Observation or StepError",
				quote(a.Name), value.Repr(orEmpty(a.Arguments)))
		}
		if r.Err != nil {
			if t.failed(out, a, r); out.Done {
				return nil
			}
			continue
		}
		if err := checkObservation(r.Obs, "action "+quote(a.Name)); err != nil {
			return err
		}
		out.Obs.Append(r.Obs)
	}
	return nil
}

func (t *Task) postprocess(ctx context.Context, out *EnvironmentOutput) error {
	start := t.now()
	if p, ok := t.problem.(ObsPostprocessor); ok {
		err := t.hook(ctx, "PostprocessObs", func() (err error) {
			out.Obs, err = p.PostprocessObs(ctx, out.Obs)
			return err
		})
		if err != nil {
			return err
		}
		if err := checkObservation(out.Obs, "PostprocessObs of "+typed.ClassName(t.problem)); err != nil {
			return err
		}
	}
	out.Profiling.ObsPostprocess = t.now().Sub(start).Seconds()
	return nil
}

func orEmpty(o *Object) *Object {
	if o == nil {
		return value.NewObject(0)
	}
	return o
}

// quote is Python's repr of a string.
func quote(s string) string { return value.Repr(Str(s)) }

func quoteList(names []string) string { return value.Repr(dump.Strs(names)) }
