package trial

import (
	"context"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
)

// setUpEnvironment starts the sandbox within the build time limit and waits
// until it is healthy.
func (a *attempt) setUpEnvironment(ctx context.Context) error {
	a.phase = "environment setup"
	a.emit(EventEnvironmentStart, "")
	limit := a.environmentLimit()
	err := a.timed(ctx, &a.res.EnvironmentSetup, limit.duration(),
		exceptionf(environmentStartTimeout, "Environment start timed out after %s seconds", limit),
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
	return a.uploadEnvironment(ctx)
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

// uploadEnvironment copies environment/ to the working directory when it is
// not a build context (Harbor task format, section 5.3).
func (a *attempt) uploadEnvironment(ctx context.Context) error {
	dir := a.task.EnvironmentDir()
	if a.spec.Image.Ref == "" || a.spec.Image.Build != nil || a.r.Backend.Name() == "host" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return nil // a missing directory has nothing to upload
	}
	target := a.spec.Workdir
	if target == "" {
		if target, err = a.workdir(ctx, ""); err != nil {
			return err
		}
	}
	if err := sandbox.UploadDir(ctx, a.sb, dir, target); err != nil {
		return fmt.Errorf("uploading %q: %w", filepath.Base(dir), err)
	}
	return nil
}

// workdir asks the sandbox where commands of a user run.
func (a *attempt) workdir(ctx context.Context, user string) (string, error) {
	out := bounded.NewTail(4 << 10)
	if _, err := a.sb.Exec(ctx, sandbox.Command{Shell: "pwd", User: user, Stdout: out}); err != nil {
		return "", fmt.Errorf("asking for the working directory: %w", err)
	}
	if dir := strings.TrimSpace(out.String()); path.IsAbs(dir) {
		return dir, nil
	}
	return "/", nil
}

// healthcheck waits until the environment is healthy (Harbor task format,
// section 4.5).
func (a *attempt) healthcheck(ctx context.Context, check *harbor.Healthcheck, user string) error {
	started := a.r.Now()
	// The limit of one attempt is cut to whole seconds; none below one.
	limit := time.Duration(math.Trunc(check.TimeoutSec)) * time.Second
	for failures := 0; ; {
		now := a.r.Now()
		status, err := a.sb.Exec(ctx, sandbox.Command{Shell: check.Command, User: user, Timeout: limit})
		switch {
		case ctx.Err() != nil:
			return errCancelled
		case err != nil:
			return fmt.Errorf("running the healthcheck: %w", err)
		case status.TimedOut:
			return exceptionf(runtimeError, "Command timed out after %d seconds", int(limit/time.Second))
		case status.Code == 0:
			return nil
		}
		wait := check.StartIntervalSec
		if now.Sub(started).Seconds() >= check.StartPeriodSec {
			failures++
			if failures >= check.Retries {
				return exceptionf(healthcheckError, "Healthcheck failed after %d consecutive retries: %s", check.Retries, check.Command)
			}
			wait = check.IntervalSec
		}
		if err := sleep(ctx, seconds(wait)); err != nil {
			return errCancelled
		}
	}
}

// sleep waits, or returns the context's error when it ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// duration returns -1 for no limit.
func (l limit) duration() time.Duration {
	if l.sec == nil {
		return -1
	}
	return seconds(*l.sec)
}

// seconds converts, within what a Duration can hold.
func seconds(s float64) time.Duration {
	switch {
	case s <= 0 || math.IsNaN(s):
		return 0
	case s >= math.MaxInt64/float64(time.Second):
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}
