package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/verify"
)

// errVerifierLimit is the error of a verification that took too long; the
// name and text under which it is recorded differ between tasks and steps.
var errVerifierLimit = errors.New("the verifier's time limit passed")

// verify runs the tests of a stage and reads the rewards, in the agent's
// sandbox or in one of the verifier's own (Harbor task format, sections 6.2
// and 6.4).
func (a *attempt) verify(ctx context.Context, s *stage) error {
	a.phase = "verification"
	a.emit(EventVerificationStart, "")
	v := a.newVerdict(s)
	err := a.timed(ctx, s.verifierTiming, a.verifierLimit(s.step), errVerifierLimit, func(ctx context.Context) (err error) {
		if err := a.killBeforeSeal(ctx); err != nil {
			return err
		}
		if a.separate(s.step) {
			v.res, err = a.verifySeparately(ctx, s.step)
			return err
		}
		plan := a.network(s.step)
		return a.underNetwork(ctx, a.sandbox(), plan.AgentBaseline, plan.VerifierPhase, func() (err error) {
			if v.res, err = a.env.Verify(ctx, s.step); err == nil {
				// Also when the baseline cannot be brought back.
				*s.verifierResult = &jobdir.VerifierResult{Rewards: v.res.Rewards}
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	*s.verifierResult = &jobdir.VerifierResult{Rewards: v.res.Rewards}
	return nil
}

func (a *attempt) separate(step *harbor.Step) bool {
	return a.task.Config.VerifierMode(step) == harbor.Separate
}

// verifySeparately starts the verifier's own sandbox, gives it the artifacts
// and nothing else of the agent's, and runs the tests that its image holds.
func (a *attempt) verifySeparately(ctx context.Context, step *harbor.Step) (verify.Result, error) {
	var none verify.Result
	spec := a.env.VerifySpec(step)
	table := a.task.Config.VerifierEnvironment(step)
	plan := a.network(step)
	sbSpec, err := a.environmentSpec(&table, a.task.VerifierDir(step), *plan.VerifierBaseline, nil)
	if err != nil {
		return none, err
	}
	if err := a.watchNetwork(&sbSpec, !plan.VerifierPhase.Equal(*plan.VerifierBaseline)); err != nil {
		return none, err
	}
	key := "trial"
	if step != nil {
		key = step.Name
	}
	sbSpec.Name = harbor.VerifierSessionID(a.cfg.TrialName, key)
	if spec.Mounted {
		sbSpec.Mounts = []sandbox.Mount{{Source: spec.LogDir, Target: harbor.VerifierLogsDir}}
	}
	harbor.CompleteCompose(&sbSpec, a.warn)
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
		return a.uploadArtifacts(ctx, sb, step)
	}
	if !plan.VerifierPhase.Equal(*plan.VerifierBaseline) {
		if err := a.setNetwork(ctx, sb, plan.VerifierPhase); err != nil {
			return none, err
		}
	}
	return verify.Run(ctx, sb, spec)
}

// uploadArtifacts gives a separate verifier what was collected, each where it
// came from (section 6.6).
func (a *attempt) uploadArtifacts(ctx context.Context, sb sandbox.Sandbox, step *harbor.Step) error {
	root, err := os.OpenRoot(a.hostDir("artifacts"))
	if err != nil {
		return err
	}
	defer root.Close()
	for _, artifact := range a.artifacts(step) {
		if artifact.Escapes() {
			continue
		}
		rel := filepath.FromSlash(artifact.RelPath())
		info, err := root.Stat(rel)
		if err != nil {
			continue // what could not be collected is not there
		}
		host := filepath.Join(root.Name(), rel)
		if !info.IsDir() {
			if err := sandbox.UploadFile(ctx, sb, host, artifact.UploadTarget()); err != nil {
				return fmt.Errorf("uploading artifact %q: %w", artifact.Source, err)
			}
			continue
		}
		if err := environment.EmptyDirs(ctx, sb, artifact.UploadTarget()); err != nil {
			return err
		}
		if err := sandbox.UploadDir(ctx, sb, host, artifact.UploadTarget()); err != nil {
			return fmt.Errorf("uploading artifact %q: %w", artifact.Source, err)
		}
	}
	return nil
}
