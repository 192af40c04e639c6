package trial

import (
	"context"

	"github.com/proctor-run/proctor/environment"
)

// noteSandbox notes what is known of the sandbox.
func (a *attempt) noteSandbox() {
	sb := a.sandbox()
	if sb == nil {
		return
	}
	a.notes.SandboxID, a.notes.Supervision = sb.ID(), supervision(sb)
	a.notes.ImageDigest = imageDigest(sb)
}

// buildLane is that of trials whose environment is built; nil for one that is there.
func (a *attempt) buildLane() *Lane {
	if !a.builds {
		return nil
	}
	return a.r.Builds
}

// setUpEnvironment starts the sandbox within the build time limit and waits
// until it is healthy.
func (a *attempt) setUpEnvironment(ctx context.Context) error {
	err := a.startEnvironment(ctx)
	a.noteSandbox()
	if err != nil {
		return err
	}
	if a.task.Config.Environment.Healthcheck == nil {
		return nil
	}
	a.enter(phaseHealthcheck)
	err = a.env.WaitHealthy(ctx)
	if ctx.Err() != nil {
		return errCancelled
	}
	return err
}

// startEnvironment starts the sandbox when its turn has come, if it is built.
func (a *attempt) startEnvironment(ctx context.Context) error {
	leave, err := a.turn(ctx, a.buildLane(), "builds", "build")
	if err != nil {
		return err
	}
	defer leave()
	a.enter(phaseEnvironment)
	return a.timed(ctx, a.whole(), environment.Limit{}, nil, a.env.Start)
}
