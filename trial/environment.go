package trial

import (
	"context"

	"github.com/proctor-run/proctor/environment"
)

// setUpEnvironment starts the sandbox within the build time limit and waits
// until it is healthy.
func (a *attempt) setUpEnvironment(ctx context.Context) error {
	a.enter(phaseEnvironment)
	err := a.timed(ctx, a.whole(), environment.Limit{}, nil, a.env.Start)
	if sb := a.sandbox(); sb != nil {
		a.notes.SandboxID, a.notes.Supervision = sb.ID(), supervision(sb)
		a.notes.ImageDigest = imageDigest(sb)
	}
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
