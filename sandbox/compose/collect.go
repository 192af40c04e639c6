package compose

import (
	"context"
	"errors"
	"fmt"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

// Leftovers are the networks, volumes and image names of owners that have ended.
type Leftovers struct {
	engine   *Engine
	networks []network.Summary
	volumes  []volume.Volume
	names    []claimedName
}

// claimedName is a name of an image, and the name that says whose it is.
type claimedName struct{ tag, claim string }

// Leftovers lists what keep does not claim; of what could not be listed the error
// tells. It is to be called before the containers of dead owners are listed and
// removed: an owner that ends in between would still have containers that use
// what is removed here.
// What was made to be kept is listed with kept alone.
func (e *Engine) Leftovers(ctx context.Context, keep func(procid.ID) bool, kept bool) (*Leftovers, error) {
	l := &Leftovers{engine: e}
	dead := func(labels map[string]string) bool {
		owner, err := procid.Parse(labels[engine.LabelOwner])
		return err == nil && !keep(owner) && (kept || !engine.Kept(labels))
	}
	owned := client.Filters{}.Add("label", engine.LabelOwner)
	var errs []error
	networks, err := e.API.NetworkList(ctx, client.NetworkListOptions{Filters: owned})
	if client.IsErrConnectionFailed(err) {
		return l, fmt.Errorf("listing networks: %w", err) // nobody answers the rest either
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("listing networks: %w", err))
	}
	for _, n := range networks.Items {
		if dead(n.Labels) {
			l.networks = append(l.networks, n)
		}
	}
	volumes, err := e.API.VolumeList(ctx, client.VolumeListOptions{Filters: owned})
	if err != nil {
		errs = append(errs, fmt.Errorf("listing volumes: %w", err))
	}
	for _, v := range volumes.Items {
		if dead(v.Labels) {
			l.volumes = append(l.volumes, v)
		}
	}
	l.names, err = e.deadNames(ctx, keep)
	return l, errors.Join(append(errs, err)...)
}

// deadNames lists the names of images that dead owners have claimed.
func (e *Engine) deadNames(ctx context.Context, keep func(procid.ID) bool) ([]claimedName, error) {
	list, err := e.API.ImageList(ctx, client.ImageListOptions{Filters: client.Filters{}.Add("reference", claimPrefix+"*")})
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	var names []claimedName
	for _, item := range list.Items {
		for _, claim := range item.RepoTags {
			if tag, owner, ok := readClaim(claim); ok && !keep(owner) {
				names = append(names, claimedName{tag, claim})
			}
		}
	}
	return names, nil
}

// Remove removes all of them, once the containers have gone, and returns a line for
// each; a dry run removes nothing.
func (l *Leftovers) Remove(ctx context.Context, dry bool) (removed []string, err error) {
	var errs []error
	remove := func(line string, do func() error) {
		if !dry {
			if err := do(); err != nil {
				errs = append(errs, err)
				return
			}
		}
		removed = append(removed, line)
	}
	for _, n := range l.networks {
		remove(fmt.Sprintf("network %s of trial %q", n.Name, n.Labels[engine.LabelTrial]), func() error { return l.engine.removeNetwork(ctx, n) })
	}
	for _, v := range l.volumes {
		remove(fmt.Sprintf("volume %s of trial %q", v.Name, v.Labels[engine.LabelTrial]), func() error { return l.engine.removeVolume(ctx, v.Name) })
	}
	for _, n := range l.names {
		remove("image name "+n.tag, func() error { return l.engine.untag(ctx, []string{n.tag, n.claim}) })
	}
	return removed, errors.Join(errs...)
}
