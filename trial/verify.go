package trial

import (
	"context"
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/verify"
)

// errVerifierLimit is the error of a verification that took too long; the
// name and text under which it is recorded differ between tasks and steps.
var errVerifierLimit = errors.New("the verifier's time limit passed")

// judge runs the tests of a stage and reads the rewards, in the agent's
// sandbox or in one of the verifier's own (Harbor task format, sections 6.2
// and 6.4).
func (a *attempt) judge(ctx context.Context, s *stage) error {
	leave, err := a.turn(ctx, a.r.Verifiers, "verifies", "verify")
	if err != nil {
		return err
	}
	defer leave()
	a.enter(phaseVerification)
	v := a.addVerdict(s)
	err = a.timed(ctx, s.results, a.limits.verifier(s.step), errVerifierLimit, func(ctx context.Context) (err error) {
		if err := a.endBeforeSeal(ctx, s); err != nil {
			return err
		}
		if separate(a.task, s.step) {
			v.res, err = a.verifySeparately(ctx, s.step)
			return err
		}
		plan := a.net.plan(s.step)
		return a.withNetwork(ctx, a.sandbox(), plan.AgentBaseline, plan.VerifierPhase, func() (err error) {
			if v.res, err = a.env.Verify(ctx, s.step); err == nil {
				// Also when the baseline cannot be brought back.
				s.setVerifier(&jobdir.VerifierResult{Rewards: v.res.Rewards})
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	s.setVerifier(&jobdir.VerifierResult{Rewards: v.res.Rewards})
	return nil
}

// separate reports whether a step, or a single-step task, is verified in a
// sandbox of its own.
func separate(task *harbor.Task, step *harbor.Step) bool {
	return task.Config.VerifierMode(step) == harbor.Separate
}

// verifySeparately starts the verifier's own sandbox, gives it the artifacts
// and nothing else of the agent's, and runs the tests that its image holds.
func (a *attempt) verifySeparately(ctx context.Context, step *harbor.Step) (verify.Result, error) {
	var none verify.Result
	spec := a.env.VerifySpec(step)
	logs := ""
	if spec.Mounted {
		logs = spec.LogDir
	}
	sbSpec, err := a.plans.verifierSpec(step, logs)
	if err != nil {
		return none, err
	}
	sb, err := a.r.Backend.Create(ctx, sbSpec)
	if err != nil {
		return none, fmt.Errorf("starting the verifier's sandbox: %w", err)
	}
	defer func() {
		if err := environment.Destroy(ctx, sb); err != nil {
			a.warn("removing the verifier's sandbox: %v", err)
		}
	}()
	spec.Prepare = func(ctx context.Context) error {
		if err := environment.EmptyDirs(ctx, sb, harbor.VerifierLogsDir); err != nil {
			return err
		}
		return a.artifacts.upload(ctx, sb, step)
	}
	if plan := a.net.plan(step); verifierSwitches(plan) {
		if err := a.setNetwork(ctx, sb, plan.VerifierPhase); err != nil {
			return none, err
		}
	}
	return verify.Run(ctx, sb, spec)
}
