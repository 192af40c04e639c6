package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

// Collect removes the containers whose owner keep does not claim, the networks,
// volumes and image names of their compose projects, and built images that
// nobody used for ImageTTL and that were not built to be kept. A container whose
// owner cannot be read is left alone, and so is what was made to be kept, unless
// Options.CollectKept is set. Where no engine answers the error is
// sandbox.ErrUnavailable.
func (b *Backend) Collect(ctx context.Context, keep func(procid.ID) bool) ([]string, error) {
	return b.collect(ctx, keep, false)
}

// Survey lists what Collect would remove, and removes nothing.
func (b *Backend) Survey(ctx context.Context, keep func(procid.ID) bool) ([]string, error) {
	return b.collect(ctx, keep, true)
}

func (b *Backend) collect(ctx context.Context, keep func(procid.ID) bool, dry bool) ([]string, error) {
	// What containers use is listed before them: an owner may end at any time.
	left, leftErr := b.projects.Leftovers(ctx, keep, b.kept)
	list, err := b.api.ContainerList(ctx, client.ContainerListOptions{
		All:     true,
		Filters: make(client.Filters).Add("label", engine.LabelOwner),
	})
	if client.IsErrConnectionFailed(err) {
		return nil, fmt.Errorf("%w: listing containers: %w", sandbox.ErrUnavailable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listing containers: %w", err)
	}
	containers, err := b.collectContainers(ctx, list.Items, keep, dry)
	projects, projectsErr := left.Remove(ctx, dry)
	images, imagesErr := b.collectImages(ctx, dry)
	return slices.Concat(containers, projects, images), errors.Join(err, leftErr, projectsErr, imagesErr)
}

func (b *Backend) collectContainers(ctx context.Context, list []container.Summary, keep func(procid.ID) bool, dry bool) (removed []string, err error) {
	var errs []error
	for _, item := range list {
		owner, err := procid.Parse(item.Labels[engine.LabelOwner])
		if err != nil || keep(owner) || engine.Kept(item.Labels) && !b.kept {
			continue
		}
		name := item.ID
		if len(item.Names) > 0 {
			name = strings.TrimPrefix(item.Names[0], "/")
		}
		if !dry {
			err = engine.Remove(ctx, b.api, item.ID)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("removing container %s: %w", name, err))
			continue
		}
		removed = append(removed, fmt.Sprintf("container %s of trial %q", name, item.Labels[engine.LabelTrial]))
	}
	return removed, errors.Join(errs...)
}

func (b *Backend) collectImages(ctx context.Context, dry bool) ([]string, error) {
	list, err := b.api.ImageList(ctx, client.ImageListOptions{Filters: make(client.Filters).Add("reference", builtPrefix+"*", keptPrefix+"*")})
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	var removed []string
	var errs []error
	for _, item := range list.Items {
		if has(item.RepoTags, keptPrefix) || b.madeOfLate(item) {
			continue
		}
		for _, tag := range item.RepoTags {
			if !has([]string{tag}, builtPrefix) {
				continue
			}
			r, err := b.api.ImageInspect(ctx, tag)
			if err != nil || b.now().Sub(lastUse(r)) < b.imageTTL {
				continue
			}
			if !dry {
				_, err = b.api.ImageRemove(ctx, tag, client.ImageRemoveOptions{PruneChildren: true})
			}
			switch {
			case err == nil:
				removed = append(removed, "image "+tag)
			case !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err): // a conflict: in use
				errs = append(errs, fmt.Errorf("removing image %s: %w", tag, err))
			}
		}
	}
	return removed, errors.Join(errs...)
}

// madeOfLate reports whether an image is so new that its last use is as well. To
// ask for that use takes a call for each image, and a job begins with this.
func (b *Backend) madeOfLate(item image.Summary) bool {
	age := b.now().Sub(time.Unix(item.Created, 0))
	return 0 <= age && age < b.imageTTL
}

// lastUse is when an image was tagged last, which every use does. An engine makes
// a tag before it notes the time: of an image that has none yet it is when the
// image was made.
func lastUse(r client.ImageInspectResult) time.Time {
	if r.Metadata.LastTagTime.IsZero() {
		made, _ := time.Parse(time.RFC3339Nano, r.Created) // without one it is old
		return made
	}
	return r.Metadata.LastTagTime
}

// has reports whether a tag is of the family. Podman puts localhost/ before it.
func has(tags []string, family string) bool {
	for _, t := range tags {
		if strings.HasPrefix(strings.TrimPrefix(t, "localhost/"), family) {
			return true
		}
	}
	return false
}
