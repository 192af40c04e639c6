package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/types"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/proctor-run/proctor/internal/bounded"
)

// maxKeys bounds a file of credentials.
const maxKeys = 4 << 20

// Keychain finds credentials where docker login and podman login put them, see
// image.DockerKeychain. It looks up the environment's variables.
type Keychain func(string) string

var _ authn.ContextKeychain = Keychain(nil)

// Resolve is ResolveContext without a context.
func (k Keychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	return k.ResolveContext(context.Background(), r)
}

// ResolveContext returns the credentials for a repository or its registry.
func (k Keychain) ResolveContext(_ context.Context, r authn.Resource) (authn.Authenticator, error) {
	file, err := k.load()
	if err != nil || file == nil {
		return authn.Anonymous, err
	}
	for _, key := range []string{r.String(), r.RegistryStr()} {
		if key == name.DefaultRegistry {
			key = authn.DefaultAuthKey
		}
		found, err := file.GetAuthConfig(key)
		if err != nil {
			return authn.Anonymous, fmt.Errorf("asking for the credentials of %s: %w", key, err)
		}
		found.ServerAddress = "" // always set
		if found != (types.AuthConfig{}) {
			return authn.FromConfig(authn.AuthConfig{
				Username: found.Username, Password: found.Password, Auth: found.Auth,
				IdentityToken: found.IdentityToken, RegistryToken: found.RegistryToken,
			}), nil
		}
	}
	return authn.Anonymous, nil
}

// places lists the files that may hold credentials, the first one first.
func (k Keychain) places() []string {
	var places []string
	add := func(dir string, below ...string) {
		if dir != "" {
			places = append(places, filepath.Join(append([]string{dir}, below...)...))
		}
	}
	home := k("HOME")
	if dir := k("DOCKER_CONFIG"); dir != "" {
		add(dir, "config.json")
	} else {
		add(home, ".docker", "config.json")
	}
	add(k("REGISTRY_AUTH_FILE"))
	add(k("XDG_RUNTIME_DIR"), "containers", "auth.json")
	if dir := k("XDG_CONFIG_HOME"); dir != "" {
		add(dir, "containers", "auth.json")
	} else {
		add(home, ".config", "containers", "auth.json")
	}
	return places
}

// load returns nil when there is no file.
func (k Keychain) load() (*configfile.ConfigFile, error) {
	for _, place := range k.places() {
		f, err := os.Open(place)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading credentials: %w", err)
		}
		data, err := bounded.Read(f, maxKeys)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("reading credentials: %w", err)
		}
		file, err := config.LoadFromReader(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("reading credentials in %q: %w", place, err)
		}
		return file, nil
	}
	return nil, nil
}
