package trial

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
)

// setUpEnvironment starts the sandbox within the build time limit and waits
// until it is healthy.
func (a *attempt) setUpEnvironment(ctx context.Context) error {
	a.phase = "environment setup"
	a.emit(EventEnvironmentStart, "")
	limit := a.environmentLimit()
	err := a.timed(ctx, &a.res.EnvironmentSetup, limit.duration(),
		exception.Errorf(exception.EnvironmentStartTimeoutError, "Environment start timed out after %s seconds", limit),
		a.startSandbox)
	if err != nil {
		return err
	}
	if check := a.task.Config.Environment.Healthcheck; check != nil {
		a.phase = "healthcheck"
		return a.healthcheck(ctx, check, "")
	}
	return nil
}

func (a *attempt) startSandbox(ctx context.Context) error {
	spec := a.spec
	spec.Progress = func(message string) { a.emit(EventProgress, message) }
	if a.r.Backend.Capabilities().Mounted {
		if err := a.openDirs(); err != nil {
			return err
		}
	}
	sb, err := a.r.Backend.Create(ctx, spec)
	if err != nil {
		return fmt.Errorf("starting the sandbox: %w", err)
	}
	a.sb = sb
	a.notes.SandboxID = sb.ID()
	if err := a.openVolumes(ctx); err != nil {
		return err
	}
	return a.task.UploadEnvironment(ctx, a.sb, a.spec, a.r.Backend.Name() == jobdir.BackendHost)
}

// openDirs lets any user of the sandbox write to the mounted directories
// (Harbor task format, section 4.6). The trial's own directory is not mounted
// and stays closed.
func (a *attempt) openDirs() error {
	for _, d := range mountedDirs {
		if err := os.Chmod(a.hostDir(d.host), 0o777); err != nil {
			return fmt.Errorf("opening the trial's directories to the sandbox: %w", err)
		}
	}
	return nil
}

// healthcheck waits until the environment is healthy (Harbor task format,
// section 4.5).
func (a *attempt) healthcheck(ctx context.Context, check *harbor.Healthcheck, user string) error {
	err := check.Wait(ctx, a.sb, user, a.r.Now)
	if ctx.Err() != nil {
		return errCancelled
	}
	return err
}

// duration returns -1 for no limit.
func (l limit) duration() time.Duration {
	if l.sec == nil {
		return -1
	}
	return harbor.Seconds(*l.sec)
}
