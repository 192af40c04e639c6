package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

// image decides between the reference and the build (Harbor task format,
// section 5.3): the reference wins unless a build is forced and there is
// something to build.
func (b *Backend) image(ctx context.Context, spec sandbox.Spec) (compose.Image, error) {
	from := spec.Image
	if from.Build != nil && (from.Ref == "" || from.ForceBuild) {
		return b.built(ctx, spec)
	}
	return b.pulled(ctx, from.Ref, spec.Progress)
}

// pulled returns a referenced image, from a registry when the engine has none.
func (b *Backend) pulled(ctx context.Context, ref string, progress func(string)) (compose.Image, error) {
	return b.pulledFor(ctx, ref, "", progress)
}

// pulledFor is pulled for a platform, OS/ARCHITECTURE[/VARIANT]; empty means
// the engine's own.
func (b *Backend) pulledFor(ctx context.Context, ref, platform string, progress func(string)) (compose.Image, error) {
	img, err := b.inspect(ctx, ref)
	if !cerrdefs.IsNotFound(err) {
		return img, err
	}
	release, _, err := b.images.hold(ctx, ref)
	if err != nil {
		return compose.Image{}, fmt.Errorf("waiting for the pull of %q: %w", ref, err)
	}
	defer release(false)
	if img, err = b.inspect(ctx, ref); !cerrdefs.IsNotFound(err) {
		return img, err
	}
	if err := b.pull(ctx, ref, platform, progress); err != nil {
		return compose.Image{}, err
	}
	return b.inspect(ctx, ref)
}

func (b *Backend) inspect(ctx context.Context, ref string) (compose.Image, error) {
	r, err := b.api.ImageInspect(ctx, ref)
	if err != nil {
		return compose.Image{}, fmt.Errorf("inspecting image %q: %w", ref, err)
	}
	if r.Os != "" && r.Os != "linux" {
		return compose.Image{}, fmt.Errorf("image %q is for %s: %w", ref, r.Os, sandbox.ErrUnsupported)
	}
	img := compose.Image{Ref: ref, ID: r.ID}
	if c := r.Config; c != nil {
		img.Entrypoint, img.Cmd, img.User, img.Workdir, img.Env = c.Entrypoint, c.Cmd, c.User, c.WorkingDir, c.Env
	}
	return img, nil
}

// absent are the registries' words for an image that is not there, or that is
// hidden from those who may not see it. The engine passes them on in text.
var absent = [...]string{"not found", "manifest unknown", "name unknown", "does not exist", "no such image", "repository name not known"}

func (b *Backend) pull(ctx context.Context, ref, wanted string, progress func(string)) error {
	options := client.ImagePullOptions{RegistryAuth: credentials(ref)}
	if p, err := engine.Platform(wanted); err != nil {
		return err
	} else if p != nil {
		options.Platforms = []ocispec.Platform{*p}
	}
	said := engine.NewReporter(progress, b.now)
	said.Say("pulling " + ref)
	stream, err := b.api.ImagePull(ctx, ref, options)
	if err == nil {
		for message, streamErr := range stream.JSONMessages(ctx) {
			if err = streamErr; err == nil && message.Error != nil {
				err = message.Error
			}
			if err != nil {
				break
			}
			if message.Status != "" {
				said.Sometimes(fmt.Sprintf("pulling %s: %s", ref, strings.ToLower(message.Status)))
			}
		}
		_ = stream.Close()
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("pulling %q: %w", ref, context.Cause(ctx))
	case cerrdefs.IsNotFound(err) || engine.Says(err, absent[:]...):
		return fmt.Errorf("pulling %q: %w: %w", ref, sandbox.ErrImageNotFound, err)
	}
	return fmt.Errorf("pulling %q: %w", ref, err)
}

// credentials are what the user's Docker or Podman configuration holds for the
// registry of ref; none when it holds nothing.
func credentials(ref string) string {
	parsed, err := name.ParseReference(ref, name.WeakValidation)
	if err != nil {
		return ""
	}
	found, err := authn.DefaultKeychain.Resolve(parsed.Context())
	if err != nil || found == authn.Anonymous {
		return ""
	}
	config, err := found.Authorization()
	if err != nil {
		return ""
	}
	encoded, err := authconfig.Encode(registry.AuthConfig{
		Username:      config.Username,
		Password:      config.Password,
		Auth:          config.Auth,
		IdentityToken: config.IdentityToken,
		RegistryToken: config.RegistryToken,
		ServerAddress: parsed.Context().RegistryStr(),
	})
	if err != nil {
		return ""
	}
	return encoded
}

// keyed lets one caller at a time work on each key. The zero value is ready.
type keyed struct {
	mu   sync.Mutex
	keys map[string]*turn
}

// turn is the state of one key while anybody is interested in it.
type turn struct {
	token   chan struct{} // holds the one whose turn it is
	users   int
	results int // how many turns ended with a result
}

// hold waits for the key's turn. fresh says that another caller has come to a
// result since hold was called. The returned function ends the turn, and says
// whether it had a result of its own.
func (k *keyed) hold(ctx context.Context, key string) (release func(result bool), fresh bool, err error) {
	k.mu.Lock()
	if k.keys == nil {
		k.keys = make(map[string]*turn)
	}
	t := k.keys[key]
	if t == nil {
		t = &turn{token: make(chan struct{}, 1)}
		k.keys[key] = t
	}
	t.users++
	before := t.results
	k.mu.Unlock()

	leave := func() {
		if t.users--; t.users == 0 {
			delete(k.keys, key)
		}
	}
	select {
	case t.token <- struct{}{}:
	case <-ctx.Done():
		k.mu.Lock()
		defer k.mu.Unlock()
		leave()
		return nil, false, context.Cause(ctx)
	}
	k.mu.Lock()
	fresh = t.results > before
	k.mu.Unlock()
	return func(result bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if result {
			t.results++
		}
		leave()
		<-t.token
	}, fresh, nil
}

var errNoImage = errors.New("the engine does not have the image that it built")
