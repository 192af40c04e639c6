package environment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/sandbox"
)

// Config says what to run. Backend, Task, Spec, Logs and Now are needed.
type Config struct {
	Backend sandbox.Backend
	Task    *harbor.Task
	// Spec describes the sandbox, all mounts included; see LogMounts.
	Spec sandbox.Spec
	// Logs is the directory of the host with the log directories, which
	// MakeLogDirs made.
	Logs string
	// StartLimit bounds each start of a sandbox with the files that it needs.
	StartLimit Limit
	// Uploads come into each sandbox once it is healthy.
	Uploads []Upload

	// Lookup finds variables of the host, for the templates of the verifier.
	Lookup harbor.Lookup
	// VerifierEnv is added to the variables of the task's verifier.
	VerifierEnv harbor.Env
	// OutputLimit bounds the kept output of the tests, in bytes.
	OutputLimit int64
	// Redact wraps the file of the tests' output, see verify.Spec; may be nil.
	Redact func(io.Writer) io.WriteCloser
	// Sealed: verifications close the reward channel, see verify.Spec.
	Sealed bool
	// Now is the clock of health checks and of the evidence of verifications.
	Now func() time.Time
}

// ErrClosed is the error of everything that is asked of an environment after
// Close.
var ErrClosed = errors.New("the environment is closed")

// destroyLimit bounds the removal of a sandbox.
const destroyLimit = time.Minute

// Environment is a task's environment. Its methods may be called concurrently;
// one that replaces the sandbox waits for no command in the old one.
type Environment struct {
	cfg Config

	mu     sync.Mutex // guards the rest
	sb     sandbox.Sandbox
	closed bool
	// used counts the commands of Exec. testsInside: tests and rewards of a
	// verification are in the sandbox.
	used        int
	testsInside bool
}

// New returns an environment that runs nothing yet.
func New(cfg Config) *Environment { return &Environment{cfg: cfg} }

// Task is the task of the environment.
func (e *Environment) Task() *harbor.Task { return e.cfg.Task }

// Start makes the sandbox and brings the files that belong into it, within the
// start limit. What it made before an error is removed by Close.
func (e *Environment) Start(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.start(ctx)
}

func (e *Environment) start(ctx context.Context) error {
	if e.closed {
		return ErrClosed
	}
	limit := e.cfg.StartLimit
	return limit.Bound(ctx, limit.Passed(exception.EnvironmentStartTimeoutError, "Environment start"), e.create)
}

func (e *Environment) create(ctx context.Context) error {
	if err := checkOS(e.cfg.Task, e.cfg.Backend); err != nil {
		return err
	}
	if e.cfg.Backend.Capabilities().Mounted {
		if err := e.openLogDirs(); err != nil {
			return err
		}
	}
	sb, err := e.cfg.Backend.Create(ctx, e.cfg.Spec)
	if err != nil {
		return fmt.Errorf("starting the sandbox: %w", err)
	}
	e.sb = sb
	return e.furnish(ctx)
}

// furnish brings what belongs into the sandbox into it.
func (e *Environment) furnish(ctx context.Context) error {
	if err := openVolumes(ctx, e.sb, e.cfg.Spec.Mounts); err != nil {
		return err
	}
	return e.uploadFiles(ctx, e.sb)
}

// Renew makes the sandbox one that nothing has happened in yet, and waits until it
// is as the first one was when the agent began. A sandbox that is a
// [sandbox.Resetter] is reset; any other, or one whose reset fails, is replaced.
func (e *Environment) Renew(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.used, e.testsInside = 0, false
	begin := e.start
	if e.reset(ctx) {
		begin = e.restart
	} else if err := e.destroy(ctx); err != nil {
		return fmt.Errorf("removing the sandbox before a reset: %w", err)
	}
	// Nothing runs that could write to them.
	if err := e.emptyLogDirs(); err != nil {
		return fmt.Errorf("resetting: %w", err)
	}
	if err := begin(ctx); err != nil {
		return err
	}
	if err := e.waitHealthy(ctx, e.sb); err != nil {
		return err
	}
	return e.equip(ctx, e.sb)
}

// BeginFrom replaces the sandbox with one that begins with the files of a snapshot, which
// was taken of another sandbox of the same Spec when it was healthy and its uploads were in
// it. What the old one wrote to the log directories stays. After an error there may be no
// sandbox, and Renew makes one.
func (e *Environment) BeginFrom(ctx context.Context, from sandbox.Snapshot) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.used, e.testsInside = 0, false
	if err := e.destroy(ctx); err != nil {
		return fmt.Errorf("removing the sandbox before another begins: %w", err)
	}
	limit := e.cfg.StartLimit
	return limit.Bound(ctx, limit.Passed(exception.EnvironmentStartTimeoutError, "Environment start"), func(ctx context.Context) error {
		sb, err := from.Fork(ctx, e.cfg.Spec)
		if err != nil {
			return fmt.Errorf("starting the sandbox: %w", err)
		}
		e.sb = sb
		return nil
	})
}

// reset brings the sandbox back to how it was created, and reports whether it is.
func (e *Environment) reset(ctx context.Context) bool {
	resetter, ok := sandbox.As[sandbox.Resetter](e.sb)
	if !ok {
		return false
	}
	e.ownLogs(ctx)
	limit := e.cfg.StartLimit
	return limit.Bound(ctx, limit.Passed(exception.EnvironmentStartTimeoutError, "Environment start"), resetter.Reset) == nil
}

// restart is start with a sandbox that was reset.
func (e *Environment) restart(ctx context.Context) error {
	if e.cfg.Backend.Capabilities().Mounted {
		if err := e.openLogDirs(); err != nil {
			return err
		}
	}
	limit := e.cfg.StartLimit
	return limit.Bound(ctx, limit.Passed(exception.EnvironmentStartTimeoutError, "Environment start"), e.furnish)
}

// Sandbox returns the sandbox that runs now, nil when none does. Renew replaces
// it.
func (e *Environment) Sandbox() sandbox.Sandbox {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sb
}

// Used counts the commands of [Environment.Exec] since the sandbox was started.
func (e *Environment) Used() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.used
}

// running returns the sandbox, or why there is none.
func (e *Environment) running() (sandbox.Sandbox, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return nil, ErrClosed
	case e.sb == nil:
		return nil, sandbox.ErrDestroyed
	}
	return e.sb, nil
}

// Keep stops the sandbox and leaves it for people to look at; hint says how.
// The environment is closed then. Where the backend cannot, nothing is done and
// the error is sandbox.ErrUnsupported.
func (e *Environment) Keep(ctx context.Context) (hint string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	stopper, ok := sandbox.As[sandbox.Stopper](e.sb)
	if !ok {
		return "", sandbox.ErrUnsupported
	}
	e.ownLogs(ctx)
	dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyLimit)
	defer cancel()
	if hint, err = stopper.Stop(dctx); err != nil {
		return "", err
	}
	e.sb, e.closed = nil, true
	return hint, nil
}

// Close removes the sandbox, also when ctx has ended. Nothing can be done with
// the environment afterwards. A Close that failed may be repeated.
func (e *Environment) Close(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return e.destroy(ctx)
}

func (e *Environment) destroy(ctx context.Context) error {
	if e.sb == nil {
		return nil
	}
	e.ownLogs(ctx)
	if err := Destroy(ctx, e.sb); err != nil {
		return err
	}
	e.sb = nil
	return nil
}

// OwnLogs lets this program read and remove what the sandbox wrote to the log
// directories, as far as it can.
func (e *Environment) OwnLogs(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ownLogs(ctx)
}

func (e *Environment) ownLogs(ctx context.Context) {
	if e.sb == nil {
		return
	}
	for _, m := range LogMounts(e.cfg.Backend.Capabilities(), e.cfg.Logs) {
		sandbox.Own(ctx, e.sb, m.Target)
	}
}

// Destroy removes a sandbox within a bound, also when ctx has ended.
func Destroy(ctx context.Context, sb sandbox.Sandbox) error {
	dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyLimit)
	defer cancel()
	return sb.Destroy(dctx)
}
