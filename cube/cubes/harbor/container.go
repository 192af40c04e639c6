package harborcube

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
)

// outputLimit bounds what is kept of the tests' output, in bytes, where no
// trial says otherwise.
const outputLimit = 16 << 20

// launch is a container config that starts the environment of a task.
type launch struct {
	cube.ContainerConfig
	task *harbor.Task
	host harbor.Lookup
	now  func() time.Time
}

var _ cube.SandboxLauncher = (*launch)(nil)

func (*launch) TypeName() string { return "proctor.harbor.Environment" }

// LaunchSandbox starts the environment as a trial does, within its time limit.
// What is written to its log directories goes with it.
func (l *launch) LaunchSandbox(ctx context.Context, b sandbox.Backend) (cube.Container, error) {
	logs, err := os.MkdirTemp("", "proctor-cube-")
	if err != nil {
		return nil, err
	}
	env, err := l.environment(b, logs)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(logs))
	}
	c := &container{env: env, logs: logs, owned: true}
	if err = env.Start(ctx); err == nil {
		err = env.WaitHealthy(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop(ctx))
	}
	c.id = env.Sandbox().ID()
	return c, nil
}

// environment describes what the task asks for, with its logs in a directory.
func (l *launch) environment(b sandbox.Backend, logs string) (*environment.Environment, error) {
	if err := environment.MakeLogDirs(logs); err != nil {
		return nil, err
	}
	spec, err := l.spec(b, environment.LogMounts(b.Capabilities(), logs))
	if err != nil {
		return nil, err
	}
	return environment.New(environment.Config{
		Backend: b, Task: l.task, Spec: spec, Logs: logs, Lookup: l.host, OutputLimit: outputLimit, Now: l.now,
		StartLimit: environment.Limit{Sec: &l.task.Config.Environment.BuildTimeoutSec},
	}), nil
}

func (l *launch) spec(b sandbox.Backend, mounts []sandbox.Mount) (sandbox.Spec, error) {
	t := l.task
	owner, err := procid.Self()
	if err != nil {
		return sandbox.Spec{}, err
	}
	name := filepath.Base(t.Dir) + "-" + uuid.NewString()[:8]
	p := environment.Planner{
		Backend: b.Name(), Can: b.Capabilities(), Task: t, Lookup: l.host,
		Labels: sandbox.Labels{Job: "cube", Trial: name, Owner: owner},
	}
	if err := p.Check(); err != nil {
		return sandbox.Spec{}, err
	}
	plan := t.Config.PlanNetwork(nil, nil, nil)
	if err := plan.CheckSwitching(""); err != nil {
		return sandbox.Spec{}, err
	}
	return p.Spec(environment.Request{Name: name, Network: plan.AgentBaseline, Mounts: mounts})
}

// container is a task's environment as CUBE's layer sees it. Its commands are
// the agent's.
type container struct {
	env  *environment.Environment
	id   string // of the first sandbox: that of a container does not change
	logs string
	// owned: the environment and the logs go with the container. Otherwise they
	// are somebody else's.
	owned bool

	mu     sync.Mutex
	closed bool
}

var _ cube.Container = (*container)(nil)

// containerOf returns the environment behind a container.
func containerOf(c cube.Container) (*container, bool) {
	for c != nil {
		if own, ok := c.(*container); ok {
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

func (c *container) ID() string { return c.id }

// ready is an error once the task was closed, or its environment.
func (c *container) ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return environment.ErrClosed
	}
	return nil
}

func (c *container) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// Exec runs a command of the agent as its user.
func (c *container) Exec(ctx context.Context, req cube.ExecRequest) (cube.ExecResult, error) {
	if err := c.ready(); err != nil {
		return cube.ExecResult{}, err
	}
	return cube.SandboxContainer(agentCommands{e: c.env}).Exec(ctx, req)
}

// agentCommands is the part of a sandbox that runs commands.
type agentCommands struct {
	sandbox.Sandbox
	e *environment.Environment
}

func (s agentCommands) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	return s.e.Exec(ctx, cmd)
}

// Stop removes the sandbox and the logs that are the container's own.
func (c *container) Stop(ctx context.Context) error {
	c.close()
	if !c.owned {
		return nil
	}
	if err := c.env.Close(ctx); err != nil {
		return err
	}
	return os.RemoveAll(c.logs)
}
