package trial

import (
	"context"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/verify"
)

// verify runs the tests in the agent's sandbox and reads the rewards (Harbor
// task format, sections 6.1 and 6.2).
func (a *attempt) verify(ctx context.Context) error {
	a.phase = "verification"
	a.emit(EventVerificationStart, "")
	spec := verify.Spec{
		TestDirs:    []string{a.task.TestsDir()},
		Script:      a.task.Config.Environment.OS.TestScript(),
		Env:         a.verifierEnv,
		LogDir:      a.hostDir("verifier"),
		Mounted:     a.r.Backend.Capabilities().Mounted,
		OutputLimit: a.outputLimit(),
	}
	if user := a.task.Config.VerifierUser(nil); user != nil {
		spec.User = user.String()
	}
	limit := a.limits.verifier
	var res verify.Result
	err := a.timed(ctx, &a.res.Verifier, limit.duration(),
		exceptionf(verifierTimeout, "Verifier execution timed out after %s seconds", limit),
		func(ctx context.Context) (err error) {
			res, err = verify.Run(ctx, a.sb, spec)
			return err
		})
	a.notes.Verification = &VerificationNote{
		ExitCode: res.ExitCode, OutputCutBytes: res.OutputCut,
		RewardFiles: res.Evidence, Suspicions: suspicions(res.Evidence),
	}
	if err != nil {
		return err
	}
	a.res.VerifierResult = &VerifierResult{Rewards: res.Rewards}
	return nil
}

// verifierEnv is the task's, then the run's; templates are resolved now.
func (a *attempt) verifierEnv() ([]string, error) {
	env, err := harbor.ResolveEnv(a.task.Config.VerifierEnv(nil, a.cfg.Verifier.Env.Map), a.r.Lookup)
	return assignments(env), err
}
