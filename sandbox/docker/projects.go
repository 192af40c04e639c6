package docker

import (
	"context"
	"errors"
	"fmt"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
)

// ProjectJSON returns the merged model of a Spec's compose project, see
// [compose.Engine.JSON].
func (b *Backend) ProjectJSON(ctx context.Context, spec sandbox.Spec) ([]byte, error) {
	return b.projects.JSON(ctx, spec)
}

// mainService starts the container of a compose project's service main.
type mainService struct{ launch }

// Prepare chooses the way and changes what the engine is asked for.
func (m *mainService) Prepare(ctx context.Context, o *client.ContainerCreateOptions, img compose.Image) error {
	if err := m.b.probe(ctx, m.spec, img); err != nil {
		return err
	}
	ways, program, why := m.b.ways(ctx)
	for _, w := range ways {
		if w == byEngine {
			break
		}
		if why = unsupervisable(o.HostConfig, w); why == nil {
			m.way, m.program = w, program
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case m.way == byEngine:
		warnEngine(m.spec, why)
	default:
		if how := exposed(o.HostConfig); how != "" && m.spec.Warn != nil {
			m.spec.Warn(fmt.Sprintf("compose service main %s: what runs in it can reach the supervisor of its commands", how))
		}
		// A supervisor without its connection is nothing to be started again.
		o.HostConfig.RestartPolicy = container.RestartPolicy{}
	}
	if m.spec.Hardened {
		if err := m.hardenMain(o, img); err != nil {
			return err
		}
	}
	m.prepare(o, img)
	return nil
}

// Created puts the supervisor into the container.
func (m *mainService) Created(ctx context.Context, id string) error { return m.created(ctx, id) }

// Started greets the supervisor and starts the service's own command.
func (m *mainService) Started(ctx context.Context, id string) error {
	if m.way == byEngine {
		return nil
	}
	r, err := m.b.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return fmt.Errorf("asking for the container's environment: %w", err)
	}
	hostname, env := hostnameOf(id), []string(nil)
	if c := r.Container.Config; c != nil {
		hostname, env = c.Hostname, c.Env
	}
	return m.started(ctx, environmentOf(hostname, env))
}

// Ended says how the service's own command has ended.
func (m *mainService) Ended() (ended bool, code int, output string) {
	if m.sup == nil {
		return false, 0, ""
	}
	return m.sup.service.Ended()
}

// Container is the sandbox.
func (m *mainService) Container(id, name string) compose.Container { return m.container(id, name) }

// Abort lets go of the container.
func (m *mainService) Abort() { m.abort() }

// probe makes sure that it is known how containers get a supervisor here: a
// project cannot be started in several ways one after the other.
func (b *Backend) probe(ctx context.Context, spec sandbox.Spec, img compose.Image) error {
	release, _, err := b.images.hold(ctx, probeKey)
	if err != nil {
		return err
	}
	defer release(false)
	small := sandbox.Spec{Name: spec.Name + "-probe", Labels: spec.Labels, Network: sandbox.Network{Mode: sandbox.NetworkNone}}
	for {
		ways, program, _ := b.ways(ctx)
		b.mu.Lock()
		known := b.supervisor.worked
		b.mu.Unlock()
		if known || len(ways) == 0 || ways[0] == byEngine {
			return context.Cause(ctx)
		}
		l := launch{b: b, spec: small, way: ways[0], program: program}
		c, err := b.run(ctx, small, img, false, l)
		var failed *guestError
		switch {
		case errors.As(err, &failed) && ctx.Err() == nil:
			b.fallsBack(failed)
		case err != nil:
			return err
		default:
			b.worked(l.way)
			return c.Destroy(ctx)
		}
	}
}

// probeKey is the turn of the probe; no image has the name.
const probeKey = "the supervisor's probe"

// projectImages are the images of compose projects.
type projectImages struct{ b *Backend }

func (p projectImages) Built(ctx context.Context, build compose.Build, progress func(string)) (compose.Image, error) {
	return p.b.builtFrom(ctx, build, progress)
}

func (p projectImages) Pulled(ctx context.Context, ref, platform string, progress func(string)) (compose.Image, error) {
	return p.b.pulledFor(ctx, ref, platform, progress)
}

func (p projectImages) Pull(ctx context.Context, ref, platform string, progress func(string)) error {
	return p.b.pull(ctx, ref, platform, progress)
}

func (p projectImages) Inspect(ctx context.Context, ref string) (compose.Image, error) {
	return p.b.inspect(ctx, ref)
}

func (p projectImages) Tag(ctx context.Context, source, target string) error {
	return p.b.tag(ctx, source, target)
}
