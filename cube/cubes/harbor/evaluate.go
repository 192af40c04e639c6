package harborcube

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
	"github.com/proctor-run/proctor/verify"
)

// Verdict is what an evaluation came to.
type Verdict struct {
	// Verification is the verifier's own result.
	Verification verify.Result
	// Err is how the verification failed, nil when there are rewards or null.
	Err error
	// Reward is the scalar.
	Reward float64
	Info   cube.Info
}

// Verdict returns the last evaluation since the last reset, also one that
// returned an error; nil for none.
func (p *Task) Verdict() *Verdict { return p.tried }

// Evaluate runs the task's verifier, as a trial does. The result stands until
// the agent does something: asking again does not run the tests again. A
// verification that fails is a reward of 0 with verifier_error in info; an
// error is for a sandbox that could not do its work.
func (p *Task) Evaluate(ctx context.Context, _ *cube.Observation) (float64, cube.Info, error) {
	box := p.box()
	if err := box.ready(); err != nil {
		return 0, nil, fmt.Errorf("evaluating task %q: %w", p.Metadata.ID, err)
	}
	used := box.env.Used()
	if p.last != nil && p.lastUse == used {
		return p.last.Reward, p.last.Info, nil
	}
	p.dirty = true
	v, err := p.verify(ctx, box.env)
	p.tried = v
	if err != nil {
		return 0, nil, err
	}
	p.last, p.lastUse = v, used
	return v.Reward, v.Info, nil
}

// verify returns a verdict also with an error, as far as it got.
func (p *Task) verify(ctx context.Context, env *environment.Environment) (*Verdict, error) {
	v := &Verdict{}
	v.Err = p.limit.Bound(ctx, environment.VerifierPassed(p.limit), func(ctx context.Context) (err error) {
		v.Verification, err = env.Verify(ctx, nil)
		return err
	})
	if ctx.Err() != nil {
		return v, context.Cause(ctx)
	}
	if _, typed := exception.Of(v.Err); v.Err != nil && !typed {
		return v, fmt.Errorf("verifying: %w", v.Err)
	}
	if v.Err == nil {
		v.Reward, v.Err = ScalarReward(v.Verification.Rewards)
	}
	v.Info = v.info(env.LogDir(environment.VerifierLogs))
	return v, nil
}

// ScalarReward makes one number of rewards (CUBE server, section 3.2): the key
// "reward", else the only value, else the mean; 0 for none. The error is for
// what no finite number stands for.
func ScalarReward(r *reward.Rewards) (float64, error) {
	if r == nil || r.Len() == 0 {
		return 0, nil
	}
	if n, ok := r.Get(reward.Name); ok {
		return finite(value.ToFloat(n))
	}
	var all []value.Number
	for _, n := range r.All() {
		all = append(all, n)
	}
	if len(all) == 1 {
		return finite(value.ToFloat(all[0]))
	}
	sum, err := value.Sum(all)
	if err != nil {
		return 0, err
	}
	f, err := value.ToFloat(sum)
	return finite(f/float64(len(all)), err)
}

func finite(f float64, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	if f-f != 0 { // nan and the infinities
		return 0, exception.New(exception.ValueError, "the reward "+value.FloatRepr(f)+" is not a finite number")
	}
	return f, nil
}
