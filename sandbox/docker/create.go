package docker

import (
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

// create starts a container, a second time without the image's entrypoint
// when that does not carry on with the command.
func (b *Backend) create(ctx context.Context, spec sandbox.Spec, img compose.Image) (*Container, error) {
	carriesOn, known := true, !img.Entrypoint
	if !known {
		b.mu.Lock()
		carriesOn, known = b.entrypoints[img.ID]
		b.mu.Unlock()
	}
	if known {
		return b.run(ctx, spec, img, carriesOn, nil)
	}
	c, err := b.run(ctx, spec, img, true, settle)
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
	return b.run(ctx, spec, img, false, nil)
}

// run creates and starts one container. When settled says that it has ended
// already, it is removed and nil is returned.
func (b *Backend) run(ctx context.Context, spec sandbox.Spec, img compose.Image, entrypoint bool,
	settled func(context.Context, *client.Client, string) (bool, error),
) (_ *Container, err error) {
	name := containerName(spec.Name)
	// A request that is cut off may still create the container: it is let
	// finish, so that its result is known.
	createCtx, cancel := engine.Detached(ctx)
	defer cancel()
	created, err := b.api.ContainerCreate(createCtx, options(name, spec, img, entrypoint))
	id := created.ID
	if id == "" {
		id = name
	}
	alive := false
	defer func() {
		if alive {
			return
		}
		removeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
		defer cancel()
		if rmErr := engine.Remove(removeCtx, b.api, id); rmErr != nil && err == nil {
			err = fmt.Errorf("removing container %s: %w", name, rmErr)
		}
	}()
	if err != nil {
		return nil, err
	}
	net, err := b.prepareNetwork(ctx, created.ID, spec.Network)
	if err != nil {
		return nil, err
	}
	if _, err := b.api.ContainerStart(ctx, created.ID, client.ContainerStartOptions{}); err != nil {
		return nil, fmt.Errorf("starting container %s: %w", name, err)
	}
	if settled != nil {
		runs, err := settled(ctx, b.api, created.ID)
		if err != nil || !runs {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c := newContainer(b.api, b.now, created.ID, name, spec)
	c.net = net
	if err := c.openGate(ctx); err != nil {
		return nil, err
	}
	alive = true
	return c, nil
}

// settle waits until an entrypoint has come to the keep-alive command, and
// reports whether the container runs.
func settle(ctx context.Context, api *client.Client, id string) (bool, error) {
	for range settleLooks {
		alive, _, err := running(ctx, api, id)
		if err != nil || !alive {
			return false, err
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
	return client.ContainerCreateOptions{Name: name, Config: config, HostConfig: host}
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
