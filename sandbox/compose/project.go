package compose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

var (
	_ sandbox.Sandbox       = (*Project)(nil)
	_ sandbox.Stopper       = (*Project)(nil)
	_ sandbox.ProcessLister = (*Project)(nil)
	_ sandbox.Supervised    = (*Project)(nil)
	_ sandbox.Imaged        = (*Project)(nil)
)

// labelSandbox tells the sandboxes of one owner apart, also those that have
// the same project one after the other.
const labelSandbox = "proctor.sandbox"

// composeDownLimit bounds the removal of what Create could not finish.
const composeDownLimit = 60 * time.Second

// Error says that a project could not be brought up. Its text is that
// of Harbor's error for a docker compose command that fails (Harbor task
// format, section 5.5).
type Error struct {
	Project string
	// Output is what there is to read about it: the reason, and the end of the
	// log of the container at fault.
	Output string
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("Docker compose command failed for environment %s. Command: up --detach --wait. Return code: 1. Stdout: %s. Stderr: None. ", e.Project, e.Output)
}

func (e *Error) Unwrap() error { return e.Err }

// ErrorType is the exception type in results.
func (e *Error) ErrorType() string { return "RuntimeError" }

// Project is a sandbox that is the service main of a compose project.
type Project struct {
	p    *project
	main Container
	name string // of main's container

	removing chan struct{} // holds the one that removes
	removed  bool          // guarded by removing
}

// Accepts refuses what no compose project here can be.
func Accepts(spec sandbox.Spec) error {
	switch spec.Network.Mode {
	case "", sandbox.NetworkPublic, sandbox.NetworkNone:
	default:
		return fmt.Errorf("network mode %q for a compose project, whose other services would have the whole network: %w", spec.Network.Mode, sandbox.ErrUnsupported)
	}
	if spec.Network.Switchable {
		return fmt.Errorf("changing the network of a running compose project: %w", sandbox.ErrUnsupported)
	}
	if spec.Resources.GPUs > 0 {
		return fmt.Errorf("%d GPUs: %w", spec.Resources.GPUs, sandbox.ErrUnsupported)
	}
	return nil
}

// Create reads the project of a Spec and brings it up. On an error nothing is
// left. One that is the project's own is an *[Error].
func (e *Engine) Create(ctx context.Context, spec sandbox.Spec) (_ *Project, err error) {
	m, err := e.load(ctx, spec)
	if err != nil {
		return nil, err
	}
	p := &project{
		e: e, spec: spec, model: m, id: engine.Secret(), main: e.Main(spec),
		images:     &projectImages{from: e.Images, spec: spec, model: m, of: map[string]Image{}, made: map[string]Image{}},
		containers: map[string][]string{},
	}
	for _, text := range m.notes {
		p.note(true, "%s", text)
	}
	if err := p.supported(ctx); err != nil {
		return nil, err
	}
	if err := p.images.find(ctx); err != nil {
		return nil, err
	}
	if err := p.clear(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		p.main.Abort()
		downCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), composeDownLimit)
		defer cancel()
		err = errors.Join(err, p.down(downCtx))
	}()
	if err := p.up(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	main := p.model.Services[mainService]
	name := containerNameOf(m.Name, &main, 1)
	c := p.main.Container(p.containers[mainService][0], name)
	return &Project{p: p, main: c, name: name, removing: make(chan struct{}, 1)}, nil
}

// ID is the id of main's container.
func (s *Project) ID() string { return s.main.ID() }

// Exec runs a command in main.
func (s *Project) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	return s.main.Exec(ctx, cmd)
}

// Mark notes which processes exist in main.
func (s *Project) Mark(ctx context.Context) (sandbox.Mark, error) { return s.main.Mark(ctx) }

// KillTree ends what was born in main since the mark. Other services are no
// part of the sandbox's processes and stay.
func (s *Project) KillTree(ctx context.Context, since sandbox.Mark, grace time.Duration) error {
	return s.main.KillTree(ctx, since, grace)
}

// EndAll ends everything in main, see sandbox.Restarter. Other services stay.
func (s *Project) EndAll(ctx context.Context, grace time.Duration) error {
	return s.main.EndAll(ctx, grace)
}

// StartServices starts main's own command again. It does not wait for the engine's
// health check.
func (s *Project) StartServices(ctx context.Context) error { return s.main.StartServices(ctx) }

// Processes lists what runs in main.
func (s *Project) Processes(ctx context.Context) ([]sandbox.Process, error) {
	return s.main.Processes(ctx)
}

// Listen lets programs in main reach this program, as the ability Listener of
// package egress says. Other services reach it where they share main's network.
func (s *Project) Listen(ctx context.Context) (net.Listener, error) { return s.main.Listen(ctx) }

// ImageDigest is of the image of main.
func (s *Project) ImageDigest() string { return s.main.ImageDigest() }

// Supervision says what supervises the commands in main.
func (s *Project) Supervision() string { return s.main.Supervision() }

// Upload unpacks a tar stream in main.
func (s *Project) Upload(ctx context.Context, dir string, tar io.Reader) error {
	return s.main.Upload(ctx, dir, tar)
}

// Download reads from main.
func (s *Project) Download(ctx context.Context, path string, tar io.Writer) error {
	return s.main.Download(ctx, path, tar)
}

// Destroy kills and removes every container of the project, its networks, its
// volumes and the names of its images.
func (s *Project) Destroy(ctx context.Context) error {
	select {
	case s.removing <- struct{}{}:
		defer func() { <-s.removing }()
	case <-ctx.Done():
		return fmt.Errorf("destroying compose project %q: %w", s.p.model.Name, context.Cause(ctx))
	}
	if s.removed {
		return nil
	}
	// The other services go at the same time as main.
	var wg sync.WaitGroup
	var rest error
	wg.Go(func() { rest = s.p.removeContainers(ctx) })
	err := s.main.Destroy(ctx)
	wg.Wait()
	if err = errors.Join(err, rest, s.p.down(ctx)); err != nil {
		return fmt.Errorf("destroying compose project %q: %w", s.p.model.Name, err)
	}
	s.removed = true
	return nil
}

// Stop kills what runs in every service and leaves all files for inspection.
func (s *Project) Stop(ctx context.Context) (hint string, err error) {
	if _, err := s.main.Stop(ctx); err != nil {
		return "", err
	}
	if err := s.p.stopContainers(ctx); err != nil {
		return "", fmt.Errorf("stopping compose project %q: %w", s.p.model.Name, err)
	}
	// Containers start again without them, and nobody else removes them.
	if err := s.p.e.untag(ctx, s.p.images.tags); err != nil {
		return "", fmt.Errorf("stopping compose project %q: %w", s.p.model.Name, err)
	}
	return fmt.Sprintf("docker compose -p %[1]s start && docker exec -it %[2]s bash; remove it with docker compose -p %[1]s down -v", s.p.model.Name, s.name), nil
}
