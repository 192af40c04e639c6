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

// setUpEnvironment starts the sandbox within the build time limit and waits
// until it is healthy.
func (a *attempt) setUpEnvironment(ctx context.Context) error {
	a.enter(phaseEnvironment)
	err := a.timed(ctx, a.whole(), environment.Limit{}, nil, a.env.Start)
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
