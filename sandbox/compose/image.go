package compose

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

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

// projectImages are the images of a project's services.
type projectImages struct {
	from  Images
	spec  sandbox.Spec
	model *model

	of   map[string]Image // by service
	made map[string]Image // built ones by the name that the files give them
	tags []string         // names that were given to images
}

// find builds or fetches the image of every service. Builds come first:
// another service may name what is built.
func (p *projectImages) find(ctx context.Context) error {
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
		p.of[name] = img
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
		p.of[name] = img
	}
	return nil
}

// buildOrPull makes the image of a service that can be built. Where main is a
// prebuilt image nothing is built before it is needed, as Harbor then runs no
// build: an image that is there, or can be pulled, is taken.
func (p *projectImages) buildOrPull(ctx context.Context, s *types.ServiceConfig) (Image, error) {
	if p.prebuilt() && s.Image != "" && s.PullPolicy != types.PullPolicyBuild {
		img, err := p.fetched(ctx, s)
		if err == nil || !errors.Is(err, sandbox.ErrImageNotFound) && !cerrdefs.IsNotFound(err) {
			return img, err
		}
	}
	plan, err := p.build(s)
	if err != nil {
		return Image{}, err
	}
	return p.from.Built(ctx, plan, p.spec.Progress)
}

// prebuilt reports whether the Spec gives main an image (section 5.3).
func (p *projectImages) prebuilt() bool {
	img := p.spec.Image
	return img.Ref != "" && (img.Build == nil || !img.ForceBuild)
}

// fetched returns an image that the files name.
func (p *projectImages) fetched(ctx context.Context, s *types.ServiceConfig) (Image, error) {
	policy, _, err := s.GetPullPolicy()
	if err != nil {
		return Image{}, fmt.Errorf("service %q: %w", s.Name, err)
	}
	if s.Platform != "" {
		if _, err := engine.Platform(s.Platform); err != nil {
			return Image{}, fmt.Errorf("platform: %w", err)
		}
	}
	switch policy {
	case types.PullPolicyNever:
		img, err := p.from.Inspect(ctx, s.Image)
		if cerrdefs.IsNotFound(err) {
			err = fmt.Errorf("image %q with pull_policy never: %w: %w", s.Image, sandbox.ErrImageNotFound, err)
		}
		return img, err
	case types.PullPolicyAlways, types.PullPolicyRefresh:
		if err := p.from.Pull(ctx, s.Image, s.Platform, p.spec.Progress); err != nil {
			return Image{}, err
		}
		return p.from.Inspect(ctx, s.Image)
	}
	return p.from.Pulled(ctx, s.Image, s.Platform, p.spec.Progress)
}

// build translates the build section of a service.
func (p *projectImages) build(s *types.ServiceConfig) (Build, error) {
	c := s.Build
	plan := Build{
		Name:  s.Name,
		Dir:   c.Context,
		Text:  c.DockerfileInline,
		Force: c.NoCache || c.Pull || s.Name == mainService && p.spec.Image.ForceBuild,
		Keep:  s.Name == mainService && p.spec.Image.KeepImage,
		Options: client.ImageBuildOptions{
			NoCache:     c.NoCache,
			PullParent:  c.Pull,
			NetworkMode: c.Network,
			ShmSize:     int64(c.ShmSize),
			Target:      c.Target,
		},
	}
	if b := p.spec.Image.Build; b != nil && s.Name == mainService && b.Name != "" {
		plan.Name = b.Name
	}
	if len(c.Args) > 0 {
		plan.Options.BuildArgs = c.Args
	}
	if len(c.Labels) > 0 {
		plan.Options.Labels = c.Labels
	}
	if hosts := c.ExtraHosts.AsList(":"); len(hosts) > 0 {
		slices.Sort(hosts)
		plan.Options.ExtraHosts = hosts
	}
	for _, name := range slices.Sorted(maps.Keys(c.Ulimits)) {
		u := c.Ulimits[name]
		soft, hard := u.Soft, u.Hard
		if u.Single != 0 {
			soft, hard = u.Single, u.Single
		}
		plan.Options.Ulimits = append(plan.Options.Ulimits, &container.Ulimit{Name: name, Soft: int64(soft), Hard: int64(hard)})
	}
	if err := setPlatform(&plan.Options, s); err != nil {
		return plan, err
	}
	return plan, findDockerfile(&plan, c)
}

func setPlatform(o *client.ImageBuildOptions, s *types.ServiceConfig) error {
	text := s.Platform
	if text == "" && len(s.Build.Platforms) > 0 {
		text = s.Build.Platforms[0]
	}
	parsed, err := engine.Platform(text)
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
func findDockerfile(plan *Build, c *types.BuildConfig) error {
	if strings.Contains(plan.Dir, "://") || strings.HasPrefix(plan.Dir, "git@") || strings.HasPrefix(plan.Dir, "github.com/") {
		return fmt.Errorf("build context %q: only directories are built from: %w", plan.Dir, sandbox.ErrUnsupported)
	}
	if plan.Text != "" || c.Dockerfile == "" {
		return nil
	}
	name := c.Dockerfile
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(plan.Dir, name)
		if err != nil {
			return err
		}
		name = rel
	}
	name = filepath.Clean(name)
	if filepath.IsLocal(name) {
		plan.Dockerfile = filepath.ToSlash(name)
		return nil
	}
	text, err := readSmall(filepath.Join(plan.Dir, name))
	if err != nil {
		return fmt.Errorf("reading the Dockerfile: %w", err)
	}
	if plan.Text = string(text); plan.Text == "" {
		return fmt.Errorf("reading the Dockerfile: %s is empty", filepath.Join(plan.Dir, name))
	}
	return nil
}

// tag is what docker compose calls the image that it builds for a service
// whose files name none.
func (p *projectImages) tag(s *types.ServiceConfig) string {
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

func claimOf(tag string, owner procid.ID) string {
	return claimPrefix + tag + ":" + claimVersion + strings.ReplaceAll(owner.String(), ":", ".")
}

// readClaim is the reverse of claimOf.
func readClaim(claim string) (tag string, owner procid.ID, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(claim, "localhost/"), claimPrefix)
	if !ok {
		return "", owner, false
	}
	tag, version, _ := strings.Cut(rest, ":")
	version = strings.TrimPrefix(version, claimVersion)
	owner, err := procid.Parse(strings.ReplaceAll(version, ".", ":"))
	return tag, owner, err == nil
}

// name gives built images the names that docker compose would give them.
// The claim comes first, so that a name is never without one. A name that no
// image can have is left out.
func (p *projectImages) name(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(p.of)) {
		s := p.model.Services[name]
		tag := p.tag(&s)
		if tag == "" || !nameable(tag) {
			continue
		}
		img := p.of[name]
		claim := claimOf(tag, p.spec.Labels.Owner)
		p.tags = append(p.tags, tag, claim)
		if err := p.from.Tag(ctx, img.ID, claim); err != nil {
			return err
		}
		if err := p.from.Tag(ctx, img.ID, tag); err != nil {
			return err
		}
		img.Ref = tag
		p.of[name] = img
	}
	return nil
}

// nameable reports whether a text can be the name of an image.
func nameable(text string) bool {
	for _, bad := range []string{"___", "_-", "-_", ".-", "-."} {
		if strings.Contains(text, bad) {
			return false
		}
	}
	return strings.Trim(text, "_-.") == text
}

// untag removes names of images. Missing ones are no error.
func (e *Engine) untag(ctx context.Context, tags []string) error {
	var errs []error
	for _, tag := range tags {
		_, err := e.API.ImageRemove(ctx, tag, client.ImageRemoveOptions{Force: true})
		if err != nil && !cerrdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("removing image %s: %w", tag, err))
		}
	}
	return errors.Join(errs...)
}
