package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
	"github.com/proctor-run/proctor/sandbox/internal/entrypoint"
	"github.com/proctor-run/proctor/sandbox/internal/hardening"
)

const (
	// removeLimit bounds the removal of what Create could not finish.
	removeLimit = 30 * time.Second
	// Without a supervisor an entrypoint has settleLooks looks, settleEvery
	// apart, to reach the keep-alive command or to end.
	settleLooks = 40
	settleEvery = 25 * time.Millisecond
)

// Create fetches or builds the image and starts a container of it.
func (b *Backend) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec = hardening.Complete(spec, b.hardened, b.pids)
	spec.Resources.PIDs = cmp.Or(spec.Resources.PIDs, b.pids)
	if err := b.accepts(spec); err != nil {
		return nil, fmt.Errorf("creating sandbox %q: %w", spec.Name, err)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("creating sandbox %q: %w", spec.Name, context.Cause(ctx))
	}
	mounts, err := engine.ReadOnlyBelow(spec.Mounts)
	if err != nil {
		return nil, fmt.Errorf("creating sandbox %q: %w", spec.Name, err)
	}
	spec.Mounts = mounts
	if spec.Compose != nil {
		p, err := b.projects.Create(ctx, spec)
		if err != nil {
			return nil, notCreated(ctx, spec, err)
		}
		return p, nil
	}
	img, err := b.image(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("creating sandbox %q: %w", spec.Name, err)
	}
	c, err := b.create(ctx, spec, img)
	if err != nil {
		return nil, notCreated(ctx, spec, err)
	}
	return c, nil
}

func notCreated(ctx context.Context, spec sandbox.Spec, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return fmt.Errorf("creating sandbox %q: %w", spec.Name, err)
}

// create starts a container in the best way that works.
func (b *Backend) create(ctx context.Context, spec sandbox.Spec, img compose.Image) (*Container, error) {
	ways, program, why := b.ways(ctx)
	for _, w := range ways {
		if spec.Hardened && w != byMount {
			return nil, fmt.Errorf("%w: %w", errNotHardened, errors.Join(sandbox.ErrUnsupported, why))
		}
		if w == byEngine {
			if proxied(spec.Network) {
				return nil, fmt.Errorf("network mode %q: %w: %w", spec.Network.Mode, sandbox.ErrUnsupported, why)
			}
			warnEngine(spec, why)
		}
		c, err := b.run(ctx, spec, img, true, launch{b: b, spec: spec, way: w, program: program})
		var failed *guestError
		if errors.As(err, &failed) && ctx.Err() == nil && b.fallsBack(failed) {
			why = failed
			continue
		}
		if err == nil {
			b.worked(w)
		}
		return c, err
	}
	return nil, why
}

// stays reports whether an image's entrypoint is known to be a program of its
// own, which does not come to the keep-alive command.
func (b *Backend) stays(img compose.Image) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.services[img.ID]
}

// settle waits until the image's entrypoint runs as it will, see
// [entrypoint.Process.Settle].
func (b *Backend) settle(ctx context.Context, id string, img compose.Image, sup *supervision) error {
	stays := b.stays(img)
	if sup == nil {
		if stays {
			return nil
		}
		waits, err := settle(ctx, b.api, id)
		b.note(img, !waits && err == nil)
		return err
	}
	waits, err := sup.service.Settle(ctx, stays)
	b.note(img, !waits && err == nil)
	return err
}

// note keeps what an entrypoint is.
func (b *Backend) note(img compose.Image, stays bool) {
	if stays {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.services[img.ID] = true
	}
}

// run creates and starts one container, with the image's entrypoint or without.
func (b *Backend) run(ctx context.Context, spec sandbox.Spec, img compose.Image, withEntrypoint bool, l launch) (_ *Container, err error) {
	withEntrypoint = withEntrypoint && len(img.Entrypoint) > 0
	name := containerName(spec.Name)
	o := options(name, spec, img, withEntrypoint)
	l.prepare(&o, img)
	// A request that is cut off may still create the container: it is let
	// finish, so that its result is known.
	createCtx, cancel := engine.Making(ctx)
	defer cancel()
	created, err := b.api.ContainerCreate(createCtx, o)
	id := created.ID
	if id == "" {
		id = name
	}
	alive := false
	defer func() {
		if alive {
			return
		}
		l.abort()
		removeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
		defer cancel()
		if rmErr := engine.Remove(removeCtx, b.api, id); rmErr != nil && err == nil {
			err = fmt.Errorf("removing container %s: %w", name, rmErr)
		}
	}()
	if err != nil {
		return nil, l.failed(err)
	}
	if err := l.created(ctx, created.ID); err != nil {
		return nil, err
	}
	net, err := b.prepareNetwork(ctx, created.ID, spec.Network)
	if err != nil {
		return nil, err
	}
	if _, err := b.api.ContainerStart(ctx, created.ID, client.ContainerStartOptions{}); err != nil {
		return nil, l.failed(fmt.Errorf("starting container %s: %w", name, err))
	}
	if err := l.started(ctx, environmentOf(hostnameOf(created.ID), img.Env)); err != nil {
		return nil, err
	}
	c := l.container(created.ID, name)
	c.net = net
	if err := b.enter(ctx, c, img, withEntrypoint, l.sup); err != nil {
		return nil, err
	}
	alive = true
	return c, nil
}

// enter waits until a container that was started is ready for commands.
func (b *Backend) enter(ctx context.Context, c *Container, img compose.Image, withEntrypoint bool, sup *supervision) error {
	if withEntrypoint {
		if err := b.settle(ctx, c.id, img, sup); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := c.openGate(ctx); err != nil {
		return err
	}
	if !withEntrypoint || sup == nil {
		return nil
	}
	sup.service.Watch()
	sup.settle = func(ctx context.Context) error {
		if err := b.settle(ctx, c.id, img, sup); err != nil {
			return err
		}
		sup.service.Watch()
		return nil
	}
	return nil
}

// settle waits until an entrypoint that no supervisor has started has come to the
// keep-alive command, and reports whether it has. The error is an
// [entrypoint.EndedError] when the container has ended.
func settle(ctx context.Context, api *client.Client, id string) (bool, error) {
	for range settleLooks {
		alive, s, err := state(ctx, api, id)
		if err != nil {
			return false, err
		}
		if !alive {
			return false, &entrypoint.EndedError{Code: s.ExitCode, Said: engine.LastLog(ctx, api, id, entrypoint.KeptOutput)}
		}
		top, err := api.ContainerTop(ctx, id, client.ContainerTopOptions{})
		if err == nil {
			for _, row := range top.Processes {
				if strings.Contains(strings.Join(row, " "), "sleep infinity") && !strings.Contains(strings.Join(row, " "), "while :") {
					return true, nil
				}
			}
		}
		if err := clock.Sleep(ctx, settleEvery); err != nil {
			return false, err
		}
	}
	return false, nil
}

func options(name string, spec sandbox.Spec, img compose.Image, withEntrypoint bool) client.ContainerCreateOptions {
	config := &container.Config{
		Image: img.Ref,
		Cmd:   entrypoint.KeepAlive(),
		Labels: map[string]string{
			engine.LabelOwner: spec.Labels.Owner.String(),
			engine.LabelJob:   spec.Labels.Job,
			engine.LabelTrial: spec.Labels.Trial,
			engine.LabelKeep:  engine.KeepLabel(spec.Keep),
		},
	}
	if !withEntrypoint {
		config.Entrypoint, config.Cmd = entrypoint.KeepAlive(), nil
	}
	host := &container.HostConfig{Resources: container.Resources{
		NanoCPUs: int64(math.Round(spec.Resources.CPUs * 1e9)),
		Memory:   spec.Resources.MemoryMB << 20,
	}}
	if limit := spec.Resources.PIDs; limit > 0 {
		host.PidsLimit = &limit
	}
	if !public(spec.Network.Mode) && !spec.Network.Switchable {
		host.NetworkMode = "none"
	}
	for _, m := range spec.Mounts {
		if m.Volume {
			host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeVolume, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
			continue
		}
		host.Mounts = append(host.Mounts, mount.Mount{
			Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
		})
	}
	o := client.ContainerCreateOptions{Name: name, Config: config, HostConfig: host}
	if spec.Hardened {
		harden(&o, spec, img)
	}
	return o
}

// containerName makes a legal name of its own from a sandbox's name.
func containerName(name string) string {
	const longest = 100
	legal := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
	legal = strings.TrimLeft(legal[:min(len(legal), longest)], "_-.")
	if legal == "" {
		legal = "sandbox"
	}
	return "proctor-" + legal + "-" + engine.Secret()[:8]
}
