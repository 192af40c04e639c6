package environment

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox"
)

// WaitHealthy runs the environment's health check, if it has one, until it
// succeeds. When ctx ends, its cause is returned.
func (e *Environment) WaitHealthy(ctx context.Context) error {
	sb, err := e.running()
	if err != nil {
		return err
	}
	return e.waitHealthy(ctx, sb)
}

func (e *Environment) waitHealthy(ctx context.Context, sb sandbox.Sandbox) error {
	check := e.cfg.Task.Config.Environment.Healthcheck
	if check == nil {
		return nil
	}
	return wait(ctx, sb, check, "", e.cfg.Now)
}

// WaitForStep runs the health check of a step, if it has one, as the step's
// agent.
func (e *Environment) WaitForStep(ctx context.Context, step *harbor.Step) error {
	sb, err := e.running()
	if err != nil || step.Healthcheck == nil {
		return err
	}
	return wait(ctx, sb, step.Healthcheck, e.AgentUser(step), e.cfg.Now)
}

// wait runs a check until it succeeds (section 4.5).
func wait(ctx context.Context, sb sandbox.Sandbox, check *harbor.Healthcheck, user string, now func() time.Time) error {
	started := now()
	// The limit of one attempt is cut to whole seconds; none below one.
	limit := time.Duration(math.Trunc(check.TimeoutSec)) * time.Second
	for failures := 0; ; {
		begun := now()
		status, err := sb.Exec(ctx, sandbox.Command{Shell: check.Command, User: user, Timeout: limit})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("running the healthcheck: %w", err)
		case status.TimedOut:
			return exception.Errorf(exception.RuntimeError, "Command timed out after %d seconds", int(limit/time.Second))
		case status.Code == 0:
			return nil
		}
		pause := check.StartIntervalSec
		if begun.Sub(started).Seconds() >= check.StartPeriodSec {
			failures++
			if failures >= check.Retries {
				return exception.Errorf(exception.HealthcheckError, "Healthcheck failed after %d consecutive retries: %s", check.Retries, check.Command)
			}
			pause = check.IntervalSec
		}
		if err := clock.Sleep(ctx, harbor.Seconds(pause)); err != nil {
			return err
		}
	}
}
