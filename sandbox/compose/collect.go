package compose

import (
	"context"
	"errors"
	"fmt"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

// Collect removes the networks, volumes and image names that are left when the
// containers of dead owners have gone, and returns a line for each; a dry run
// removes nothing.
func (e *Engine) Collect(ctx context.Context, keep func(sandbox.Owner) bool, dry bool) (removed []string, err error) {
	var errs []error
	dead := func(labels map[string]string) bool {
		owner, err := sandbox.ParseOwner(labels[engine.LabelOwner])
		return err == nil && !keep(owner)
	}
	owned := client.Filters{}.Add("label", engine.LabelOwner)
	networks, err := e.API.NetworkList(ctx, client.NetworkListOptions{Filters: owned})
	if err != nil {
		errs = append(errs, fmt.Errorf("listing networks: %w", err))
	}
	for _, n := range networks.Items {
		if !dead(n.Labels) {
			continue
		}
		if err := unless(dry, func() error { return e.removeNetwork(ctx, n) }); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, fmt.Sprintf("network %s of trial %q", n.Name, n.Labels[engine.LabelTrial]))
	}
	volumes, err := e.API.VolumeList(ctx, client.VolumeListOptions{Filters: owned})
	if err != nil {
		errs = append(errs, fmt.Errorf("listing volumes: %w", err))
	}
	for _, v := range volumes.Items {
		if !dead(v.Labels) {
			continue
		}
		if err := unless(dry, func() error { return e.removeVolume(ctx, v.Name) }); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, fmt.Sprintf("volume %s of trial %q", v.Name, v.Labels[engine.LabelTrial]))
	}
	names, err := e.collectNames(ctx, keep, dry)
	return append(removed, names...), errors.Join(append(errs, err)...)
}

// collectNames removes the names of images that dead owners have claimed.
func (e *Engine) collectNames(ctx context.Context, keep func(sandbox.Owner) bool, dry bool) (removed []string, err error) {
	list, err := e.API.ImageList(ctx, client.ImageListOptions{Filters: client.Filters{}.Add("reference", claimPrefix+"*")})
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	var errs []error
	for _, item := range list.Items {
		for _, claim := range item.RepoTags {
			tag, owner, ok := readClaim(claim)
			if !ok || keep(owner) {
				continue
			}
			if err := unless(dry, func() error { return e.untag(ctx, []string{tag, claim}) }); err != nil {
				errs = append(errs, err)
				continue
			}
			removed = append(removed, "image name "+tag)
		}
	}
	return removed, errors.Join(errs...)
}

// unless does something but in a dry run.
func unless(dry bool, do func() error) error {
	if dry {
		return nil
	}
	return do()
}
