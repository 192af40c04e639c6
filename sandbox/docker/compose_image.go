package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/proctor-run/proctor/sandbox"
)

// findImages builds or fetches the image of every service. Builds come first:
// another service may name what is built.
func (p *project) findImages(ctx context.Context) error {
	names := slices.Sorted(maps.Keys(p.model.Services))
	for _, name := range names {
		s := p.model.Services[name]
		if s.Build == nil || s.GetScale() == 0 {
			continue
		}
		img, err := p.buildOrPull(ctx, &s)
		if err != nil {
			return fmt.Errorf("service %q: %w", name, err)
		}
		p.images[name] = img
		if s.Image != "" {
			p.made[s.Image] = img
		}
	}
	for _, name := range names {
		s := p.model.Services[name]
		if s.Build != nil || s.GetScale() == 0 {
			continue
		}
		img, ok := p.made[s.Image]
		if !ok {
			var err error
			if img, err = p.fetched(ctx, &s); err != nil {
				return fmt.Errorf("service %q: %w", name, err)
			}
		}
		p.images[name] = img
	}
	return nil
}

// buildOrPull makes the image of a service that can be built. Where main is a
// prebuilt image nothing is built before it is needed, as Harbor then runs no
// build: an image that is there, or can be pulled, is taken.
func (p *project) buildOrPull(ctx context.Context, s *types.ServiceConfig) (image, error) {
	if p.prebuilt() && s.Image != "" && s.PullPolicy != types.PullPolicyBuild {
		img, err := p.fetched(ctx, s)
		if err == nil || !errors.Is(err, sandbox.ErrImageNotFound) && !cerrdefs.IsNotFound(err) {
			return img, err
		}
	}
	plan, err := p.buildPlan(s)
	if err != nil {
		return image{}, err
	}
	return p.b.builtFrom(ctx, plan, p.spec.Progress)
}

// prebuilt tells whether the Spec gives main an image (section 5.3).
func (p *project) prebuilt() bool {
	img := p.spec.Image
	return img.Ref != "" && (img.Build == nil || !img.ForceBuild)
}

// fetched returns an image that the files name.
func (p *project) fetched(ctx context.Context, s *types.ServiceConfig) (image, error) {
	policy, _, err := s.GetPullPolicy()
	if err != nil {
		return image{}, err
	}
	if s.Platform != "" {
		if _, err := platform(s.Platform); err != nil {
			return image{}, fmt.Errorf("platform: %w", err)
		}
	}
	switch policy {
	case types.PullPolicyNever:
		img, err := p.b.inspect(ctx, s.Image)
		if cerrdefs.IsNotFound(err) {
			err = fmt.Errorf("image %q with pull_policy never: %w: %w", s.Image, sandbox.ErrImageNotFound, err)
		}
		return img, err
	case types.PullPolicyAlways, types.PullPolicyRefresh:
		if err := p.b.pull(ctx, s.Image, s.Platform, p.spec.Progress); err != nil {
			return image{}, err
		}
		return p.b.inspect(ctx, s.Image)
	}
	return p.b.pulledFor(ctx, s.Image, s.Platform, p.spec.Progress)
}

// buildPlan translates the build section of a service.
func (p *project) buildPlan(s *types.ServiceConfig) (buildPlan, error) {
	c := s.Build
	plan := buildPlan{
		name:  s.Name,
		dir:   c.Context,
		text:  c.DockerfileInline,
		force: c.NoCache || c.Pull || s.Name == mainService && p.spec.Image.ForceBuild,
		keep:  s.Name == mainService && p.spec.Image.KeepImage,
		options: client.ImageBuildOptions{
			NoCache:     c.NoCache,
			PullParent:  c.Pull,
			NetworkMode: c.Network,
			ShmSize:     int64(c.ShmSize),
			Target:      c.Target,
		},
	}
	if b := p.spec.Image.Build; b != nil && s.Name == mainService && b.Name != "" {
		plan.name = b.Name
	}
	if len(c.Args) > 0 {
		plan.options.BuildArgs = c.Args
	}
	if len(c.Labels) > 0 {
		plan.options.Labels = c.Labels
	}
	if hosts := c.ExtraHosts.AsList(":"); len(hosts) > 0 {
		slices.Sort(hosts)
		plan.options.ExtraHosts = hosts
	}
	for _, name := range slices.Sorted(maps.Keys(c.Ulimits)) {
		u := c.Ulimits[name]
		soft, hard := u.Soft, u.Hard
		if u.Single != 0 {
			soft, hard = u.Single, u.Single
		}
		plan.options.Ulimits = append(plan.options.Ulimits, &container.Ulimit{Name: name, Soft: int64(soft), Hard: int64(hard)})
	}
	if err := setPlatform(&plan.options, s); err != nil {
		return plan, err
	}
	return plan, plan.findDockerfile(c)
}

func setPlatform(o *client.ImageBuildOptions, s *types.ServiceConfig) error {
	text := s.Platform
	if text == "" && len(s.Build.Platforms) > 0 {
		text = s.Build.Platforms[0]
	}
	parsed, err := platform(text)
	if err != nil {
		return fmt.Errorf("platform: %w", err)
	}
	if parsed != nil {
		o.Platforms = []ocispec.Platform{*parsed}
	}
	return nil
}

// findDockerfile looks for the Dockerfile in the context, or where it lies
// outside reads it.
func (p *buildPlan) findDockerfile(c *types.BuildConfig) error {
	if strings.Contains(p.dir, "://") || strings.HasPrefix(p.dir, "git@") || strings.HasPrefix(p.dir, "github.com/") {
		return fmt.Errorf("build context %q: only directories are built from: %w", p.dir, sandbox.ErrUnsupported)
	}
	if p.text != "" || c.Dockerfile == "" {
		return nil
	}
	name := c.Dockerfile
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(p.dir, name)
		if err != nil {
			return err
		}
		name = rel
	}
	name = filepath.Clean(name)
	if filepath.IsLocal(name) {
		p.dockerfile = filepath.ToSlash(name)
		return nil
	}
	text, err := readSmall(filepath.Join(p.dir, name))
	if err != nil {
		return fmt.Errorf("reading the Dockerfile: %w", err)
	}
	if p.text = string(text); p.text == "" {
		return fmt.Errorf("reading the Dockerfile: %s is empty", filepath.Join(p.dir, name))
	}
	return nil
}

// imageTag is what docker compose calls the image that it builds for a service
// whose files name none.
func (p *project) imageTag(s *types.ServiceConfig) string {
	if s.Build == nil || s.Image != "" {
		return ""
	}
	return p.model.Name + "-" + s.Name
}

// claimPrefix begins the names of further tags on the images of a project. The
// rest of the name is the tag of the project, the version is its owner: labels
// cannot be put on a tag, and an image has many owners.
const (
	claimPrefix  = "proctor-project/"
	claimVersion = "owner-" // a version cannot begin with any mark
)

func claimOf(tag string, owner sandbox.Owner) string {
	return claimPrefix + tag + ":" + claimVersion + strings.ReplaceAll(owner.String(), ":", ".")
}

// readClaim is the reverse of claimOf.
func readClaim(claim string) (tag string, owner sandbox.Owner, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(claim, "localhost/"), claimPrefix)
	if !ok {
		return "", owner, false
	}
	tag, version, _ := strings.Cut(rest, ":")
	version = strings.TrimPrefix(version, claimVersion)
	owner, err := sandbox.ParseOwner(strings.ReplaceAll(version, ".", ":"))
	return tag, owner, err == nil
}

// nameImages gives built images the names that docker compose would give them.
// The claim comes first, so that a name is never without one. A name that no
// image can have is left out.
func (p *project) nameImages(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(p.images)) {
		s := p.model.Services[name]
		tag := p.imageTag(&s)
		if tag == "" || !nameable(tag) {
			continue
		}
		img := p.images[name]
		claim := claimOf(tag, p.spec.Labels.Owner)
		p.tags = append(p.tags, tag, claim)
		if err := p.b.tag(ctx, img.id, claim); err != nil {
			return err
		}
		if err := p.b.tag(ctx, img.id, tag); err != nil {
			return err
		}
		img.ref = tag
		p.images[name] = img
	}
	return nil
}

// nameable tells whether a text can be the name of an image.
func nameable(text string) bool {
	for _, bad := range []string{"___", "_-", "-_", ".-", "-."} {
		if strings.Contains(text, bad) {
			return false
		}
	}
	return strings.Trim(text, "_-.") == text
}

// untag removes names of images. Missing ones are no error.
func (b *Backend) untag(ctx context.Context, tags []string) error {
	var errs []error
	for _, tag := range tags {
		_, err := b.api.ImageRemove(ctx, tag, client.ImageRemoveOptions{Force: true})
		if err != nil && !cerrdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("removing image %s: %w", tag, err))
		}
	}
	return errors.Join(errs...)
}
