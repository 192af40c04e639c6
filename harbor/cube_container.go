package harbor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/sandbox"
)

// hostBackend is the name of the backend that brings its own root.
const hostBackend = "host"

// destroyLimit bounds the removal of a sandbox.
const destroyLimit = time.Minute

// cubeLaunch is a container config that starts the environment of a task.
type cubeLaunch struct {
	cube.ContainerConfig
	task *Task
	host Lookup
	run  CubeRun
}

var _ cube.SandboxLauncher = (*cubeLaunch)(nil)

func (*cubeLaunch) TypeName() string { return "proctor.harbor.Environment" }

// cubeDirs are the directories of a task that its sandbox sees, on the host
// below the log root and inside.
var cubeDirs = [...]struct{ host, inside string }{
	{"verifier", VerifierLogsDir}, {"agent", AgentLogsDir}, {"artifacts", ArtifactsDir},
}

// LaunchSandbox starts the environment as a trial does, within its time limit.
func (l *cubeLaunch) LaunchSandbox(ctx context.Context, b sandbox.Backend) (_ cube.Container, err error) {
	c := &cubeContainer{backend: b, task: l.task, logs: l.run.LogRoot}
	if c.logs == "" {
		if c.logs, err = os.MkdirTemp("", "proctor-cube-"); err != nil {
			return nil, err
		}
		c.temporary = c.logs
	}
	if err = c.makeDirs(); err == nil {
		if c.spec, err = l.spec(c, b); err == nil {
			err = c.start(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	c.id = c.sb.ID()
	return c, nil
}

func (l *cubeLaunch) spec(c *cubeContainer, b sandbox.Backend) (sandbox.Spec, error) {
	if l.run.Spec != nil {
		return *l.run.Spec, nil
	}
	t := l.task
	o := SandboxOptions{Backend: b.Name(), Can: b.Capabilities(), HostRoot: b.Name() == hostBackend, Host: l.host}
	if err := t.CheckSupport(o); err != nil {
		return sandbox.Spec{}, err
	}
	plan := t.Config.PlanNetwork(nil, nil, nil)
	if err := plan.CheckSwitching(""); err != nil {
		return sandbox.Spec{}, err
	}
	spec, err := t.SandboxSpec(&t.Config.Environment, t.EnvironmentDir(), plan.AgentBaseline, o)
	if err != nil {
		return spec, err
	}
	owner, err := sandbox.Self()
	if err != nil {
		return spec, err
	}
	spec.Name = filepath.Base(t.Dir) + "-" + uuid.NewString()[:8]
	spec.Labels = sandbox.Labels{Job: "cube", Trial: spec.Name, Owner: owner}
	if b.Capabilities().Mounted {
		for _, d := range cubeDirs {
			spec.Mounts = append(spec.Mounts, sandbox.Mount{Source: filepath.Join(c.logs, d.host), Target: d.inside})
		}
	}
	CompleteCompose(&spec, nil)
	return spec, nil
}

// cubeContainer is the environment of a task, which can be replaced by a fresh
// one. Commands of its Exec are the agent's.
type cubeContainer struct {
	backend   sandbox.Backend
	task      *Task
	spec      sandbox.Spec
	logs      string
	temporary string // to be removed; empty for none
	id        string // of the first sandbox: that of a container does not change

	mu sync.Mutex // guards the rest
	sb sandbox.Sandbox
	// used counts the agent's commands, shown tells that tests and rewards of
	// a verification are in the sandbox.
	used  int
	shown bool
}

var _ cube.Container = (*cubeContainer)(nil)

// environmentOf returns the environment behind a container.
func environmentOf(c cube.Container) (*cubeContainer, bool) {
	for c != nil {
		if own, ok := c.(*cubeContainer); ok {
			return own, true
		}
		wrapper, ok := c.(interface{ Unwrap() cube.Container })
		if !ok {
			break
		}
		c = wrapper.Unwrap()
	}
	return nil, false
}

func (c *cubeContainer) ID() string { return c.id }

// makeDirs makes the log directories, which any user of the sandbox may write
// to.
func (c *cubeContainer) makeDirs() error {
	for _, d := range cubeDirs {
		dir := filepath.Join(c.logs, d.host)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			return err
		}
	}
	return nil
}

// start creates the sandbox and waits until it is healthy.
func (c *cubeContainer) start(ctx context.Context) error {
	env := &c.task.Config.Environment
	limitErr := exception.Errorf(exception.EnvironmentStartTimeoutError, "Environment start timed out after %g seconds", env.BuildTimeoutSec)
	sctx, cancel := context.WithTimeoutCause(ctx, Seconds(env.BuildTimeoutSec), limitErr)
	defer cancel()
	sb, err := c.backend.Create(sctx, c.spec)
	if err == nil {
		c.sb = sb
		err = c.task.UploadEnvironment(sctx, sb, c.spec, c.backend.Name() == hostBackend)
	}
	if err != nil {
		if context.Cause(sctx) == limitErr {
			return limitErr
		}
		return fmt.Errorf("starting the sandbox: %w", err)
	}
	if env.Healthcheck != nil {
		return env.Healthcheck.Wait(ctx, sb, "", time.Now)
	}
	return nil
}

// renew replaces the sandbox by one that has seen nothing yet.
func (c *cubeContainer) renew(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.destroy(ctx); err != nil {
		return fmt.Errorf("removing the sandbox before a reset: %w", err)
	}
	for _, d := range cubeDirs {
		if err := emptyHostDir(filepath.Join(c.logs, d.host)); err != nil {
			return fmt.Errorf("resetting: %w", err)
		}
	}
	c.used, c.shown = 0, false
	return c.start(ctx)
}

// emptyHostDir removes what the sandbox left in a directory, without following
// its links.
func emptyHostDir(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := root.RemoveAll(e.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (c *cubeContainer) destroy(ctx context.Context) error {
	if c.sb == nil {
		return nil
	}
	dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyLimit)
	defer cancel()
	if err := c.sb.Destroy(dctx); err != nil {
		return err
	}
	c.sb = nil
	return nil
}

// Stop removes the sandbox and the temporary logs.
func (c *cubeContainer) Stop(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.destroy(ctx); err != nil {
		return err
	}
	if c.temporary == "" {
		return nil
	}
	return os.RemoveAll(c.temporary)
}

// Exec runs a command of the agent as its user. Tests that an evaluation in
// between left behind are removed before: the agent is not to see them.
func (c *cubeContainer) Exec(ctx context.Context, req cube.ExecRequest) (cube.ExecResult, error) {
	c.mu.Lock()
	sb, hide := c.sb, c.shown
	c.used++
	c.shown = false
	c.mu.Unlock()
	if sb == nil {
		return cube.ExecResult{}, sandbox.ErrDestroyed
	}
	if hide {
		if err := EmptyForTests(ctx, sb); err != nil {
			return cube.ExecResult{}, err
		}
	}
	user := ""
	if u := c.task.Config.AgentUser(nil); u != nil {
		user = u.String()
	}
	return cube.SandboxContainer(asUser{sb, user}).Exec(ctx, req)
}

// state returns the sandbox and how often the agent has used it.
func (c *cubeContainer) state() (sb sandbox.Sandbox, used int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sb, c.used
}

// Sandbox returns the sandbox that runs now, nil after Stop.
func (c *cubeContainer) Sandbox() sandbox.Sandbox {
	sb, _ := c.state()
	return sb
}

// show notes that a verification is about to bring the tests, and removes what
// is left of an earlier one.
func (c *cubeContainer) show(ctx context.Context) error {
	c.mu.Lock()
	sb, again := c.sb, c.shown
	c.shown = true
	c.mu.Unlock()
	if !again {
		return nil
	}
	return EmptyForTests(ctx, sb)
}

// asUser runs commands that name no user as one.
type asUser struct {
	sandbox.Sandbox
	user string
}

func (s asUser) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	if cmd.User == "" {
		cmd.User = s.user
	}
	return s.Sandbox.Exec(ctx, cmd)
}
