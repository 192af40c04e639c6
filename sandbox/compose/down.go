package compose

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

// networkTries is how often the removal of a network is tried whose containers
// have just gone.
const networkTries = 20

// clear removes what an earlier run of the same project has left, also of
// docker compose itself. A project of a process that lives is left alone: that
// is an error.
func (p *project) clear(ctx context.Context) error {
	own := client.Filters{}.Add("label", labelProject+"="+p.model.Name)
	list, err := p.e.listContainers(ctx, own)
	if err != nil {
		return err
	}
	for _, c := range list {
		owner, err := procid.Parse(c.Labels[engine.LabelOwner])
		if err == nil && owner != p.spec.Labels.Owner && owner.Alive() {
			return fmt.Errorf("compose project %q is in use by process %d", p.model.Name, owner.PID)
		}
	}
	if err := p.e.removeAll(ctx, own); err != nil {
		return fmt.Errorf("removing an earlier compose project %q: %w", p.model.Name, err)
	}
	return nil
}

// mine filters what belongs to this sandbox.
func (p *project) mine() client.Filters {
	return client.Filters{}.Add("label", labelSandbox+"="+p.id)
}

// down removes everything of the project. It may be repeated.
func (p *project) down(ctx context.Context) error {
	return errors.Join(p.e.removeAll(ctx, p.mine()), p.e.untag(ctx, p.images.tags))
}

func (p *project) removeContainers(ctx context.Context) error {
	return p.e.removeContainers(ctx, p.mine())
}

func (p *project) stopContainers(ctx context.Context) error {
	list, err := p.e.listContainers(ctx, p.mine())
	if err != nil {
		return err
	}
	var errs []error
	now := 0
	for _, c := range list {
		if c.State != container.StateRunning {
			continue
		}
		if _, err := p.e.API.ContainerStop(ctx, c.ID, client.ContainerStopOptions{Signal: "SIGKILL", Timeout: &now}); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// removeAll removes the containers, networks and volumes that a filter finds.
func (e *Engine) removeAll(ctx context.Context, f client.Filters) error {
	return errors.Join(e.removeContainers(ctx, f), e.removeNetworks(ctx, f), e.removeVolumes(ctx, f))
}

func (e *Engine) listContainers(ctx context.Context, f client.Filters) ([]container.Summary, error) {
	list, err := e.API.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: f})
	if err != nil {
		return nil, fmt.Errorf("listing containers: %w", err)
	}
	return list.Items, nil
}

// removeContainers kills and removes containers, all at the same time.
func (e *Engine) removeContainers(ctx context.Context, f client.Filters) error {
	list, err := e.listContainers(ctx, f)
	if err != nil {
		return err
	}
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, c := range list {
		wg.Go(func() {
			if err := engine.Remove(ctx, e.API, c.ID); err != nil {
				errs[i] = fmt.Errorf("removing container %s: %w", c.ID, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (e *Engine) removeNetworks(ctx context.Context, f client.Filters) error {
	list, err := e.API.NetworkList(ctx, client.NetworkListOptions{Filters: f})
	if err != nil {
		return fmt.Errorf("listing networks: %w", err)
	}
	var errs []error
	for _, n := range list.Items {
		errs = append(errs, e.removeNetwork(ctx, n))
	}
	return errors.Join(errs...)
}

// removeNetwork removes a network. An engine may hold it for a moment after the
// last container has gone.
func (e *Engine) removeNetwork(ctx context.Context, n network.Summary) error {
	for try := 1; ; try++ {
		_, err := e.API.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
		switch {
		case err == nil, cerrdefs.IsNotFound(err):
			return nil
		case try == networkTries || ctx.Err() != nil || !engine.Says(err, "active endpoints", "in use", "being used"):
			return fmt.Errorf("removing network %s: %w", n.Name, err)
		}
		if err := clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("removing network %s: %w", n.Name, err)
		}
	}
}

func (e *Engine) removeVolumes(ctx context.Context, f client.Filters) error {
	list, err := e.API.VolumeList(ctx, client.VolumeListOptions{Filters: f})
	if err != nil {
		return fmt.Errorf("listing volumes: %w", err)
	}
	var errs []error
	for _, v := range list.Items {
		errs = append(errs, e.removeVolume(ctx, v.Name))
	}
	return errors.Join(errs...)
}

func (e *Engine) removeVolume(ctx context.Context, name string) error {
	_, err := e.API.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	if err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("removing volume %s: %w", name, err)
	}
	return nil
}
