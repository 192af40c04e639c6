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
	"github.com/proctor-run/proctor/sandbox/internal/hardening"
)

const (
	// removeLimit bounds the removal of what Create could not finish.
	removeLimit = 30 * time.Second
	// An entrypoint has settleLooks looks, settleEvery apart, to reach the
	// keep-alive command or to end. One that does neither is a service that
	// runs beside it.
	settleLooks = 40
	settleEvery = 25 * time.Millisecond
)

// Create fetches or builds the image and starts a container of it.
func (b *Backend) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec = hardening.Complete(spec, b.hardened, b.pids)
	if err := b.accepts(spec); err != nil {
		return nil, fmt.Errorf("creating sandbox %q: %w", spec.Name, err)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("creating sandbox %q: %w", spec.Name, context.Cause(ctx))
	}
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
		c, err := b.createBy(ctx, spec, img, launch{b: b, spec: spec, way: w, program: program})
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

// createBy starts a container, a second time without the image's entrypoint
// when that does not carry on with the command.
func (b *Backend) createBy(ctx context.Context, spec sandbox.Spec, img compose.Image, l launch) (*Container, error) {
	carriesOn, known := true, len(img.Entrypoint) == 0
	if !known {
		b.mu.Lock()
		carriesOn, known = b.entrypoints[img.ID]
		b.mu.Unlock()
	}
	if known {
		return b.run(ctx, spec, img, carriesOn, l, nil)
	}
	c, err := b.run(ctx, spec, img, true, l, settle)
	carriesOn = c != nil || err != nil
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.entrypoints[img.ID] = carriesOn
	b.mu.Unlock()
	if carriesOn {
		return c, nil
	}
	return b.run(ctx, spec, img, false, l, nil)
}

// run creates and starts one container. When settled says that it has ended
// already, it is removed and nil is returned.
func (b *Backend) run(ctx context.Context, spec sandbox.Spec, img compose.Image, entrypoint bool, l launch,
	settled func(context.Context, *client.Client, string, *supervision) (bool, error),
) (_ *Container, err error) {
	name := containerName(spec.Name)
	spec.Resources.PIDs = cmp.Or(spec.Resources.PIDs, b.pids)
	o := options(name, spec, img, entrypoint)
	l.prepare(&o, img)
	// A request that is cut off may still create the container: it is let
	// finish, so that its result is known.
	createCtx, cancel := engine.Detached(ctx)
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
	if settled != nil {
		runs, err := settled(ctx, b.api, created.ID, l.sup)
		if err != nil || !runs {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c := l.container(created.ID, name)
	c.net = net
	if err := c.openGate(ctx); err != nil {
		return nil, err
	}
	alive = true
	return c, nil
}

// settle waits until an entrypoint has come to the keep-alive command, and
// reports whether it has not ended.
func settle(ctx context.Context, api *client.Client, id string, sup *supervision) (bool, error) {
	for range settleLooks {
		alive, _, err := state(ctx, api, id)
		if err != nil || !alive {
			return false, err
		}
		if sup != nil {
			if ended, _, _ := sup.ended(); ended {
				return false, nil
			}
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
	return true, nil
}

func options(name string, spec sandbox.Spec, img compose.Image, entrypoint bool) client.ContainerCreateOptions {
	config := &container.Config{
		Image: img.Ref,
		Cmd:   engine.KeepAlive(),
		Labels: map[string]string{
			engine.LabelOwner: spec.Labels.Owner.String(),
			engine.LabelJob:   spec.Labels.Job,
			engine.LabelTrial: spec.Labels.Trial,
		},
	}
	if !entrypoint {
		config.Entrypoint, config.Cmd = engine.KeepAlive(), nil
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
