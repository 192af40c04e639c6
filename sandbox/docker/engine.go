package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/moby/moby/client"
)

// endpoint is where an engine listens, and the files of its TLS identity.
type endpoint struct {
	host          string
	ca, cert, key string
}

func (e endpoint) tls() bool { return e.ca != "" || e.cert != "" }

// ErrUntrusted is wrapped by New's error for an engine that is there and is not
// spoken to, because others could stand in for it.
var ErrUntrusted = errors.New("the engine is not trusted")

// local reports whether the engine is reached without a network.
func (e endpoint) local() bool {
	return strings.HasPrefix(e.host, "unix:") || strings.HasPrefix(e.host, "npipe:")
}

// trusted refuses an engine that others can listen to or stand in for, unless the
// options let it pass, and any over a network where sandboxes are hardened (outcome
// mapping, section 13.2).
func (e endpoint) trusted(o Options) error {
	switch {
	case e.local():
		return nil
	case o.Hardened:
		return fmt.Errorf("%w: %s is reached over a network, and hardened sandboxes are made by an engine of this machine only "+
			"(forward its socket with ssh -L and name that in DOCKER_HOST)", ErrUntrusted, e.host)
	case e.tls() || o.AllowRemote:
		return nil
	}
	return fmt.Errorf("%w: %s is reached over plain TCP, where everybody on the way can take it over "+
		"(use its socket, forward that with ssh -L, or set DOCKER_TLS_VERIFY and DOCKER_CERT_PATH; --allow-remote-engine lets it pass)", ErrUntrusted, e.host)
}

// maxConfigFile bounds what is read of the user's Docker configuration.
const maxConfigFile = 1 << 20

// findEngine decides which engine is meant. As the docker command does: the
// given host, DOCKER_HOST, the context of DOCKER_CONTEXT, the context that the
// configuration file names, the default socket. Besides, where the default
// socket is missing, the usual sockets of rootless engines and of Podman.
func findEngine(host string, getenv func(string) string) (endpoint, error) {
	if host == "" {
		host = getenv("DOCKER_HOST")
	}
	if host != "" {
		return checked(envTLS(endpoint{host: host}, getenv))
	}
	dir := configDir(getenv)
	name := getenv("DOCKER_CONTEXT")
	if name == "" && dir != "" {
		var config struct {
			CurrentContext string `json:"currentContext"`
		}
		if err := readJSON(filepath.Join(dir, "config.json"), &config); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return endpoint{}, err
		}
		name = config.CurrentContext
	}
	if name != "" && name != "default" {
		e, err := contextEngine(dir, name)
		if err != nil {
			return endpoint{}, err
		}
		return checked(e)
	}
	return endpoint{host: defaultHost(getenv)}, nil
}

func checked(e endpoint) (endpoint, error) {
	if strings.HasPrefix(e.host, "ssh:") {
		return endpoint{}, fmt.Errorf("address %q: ssh is not spoken here (forward the engine's socket with ssh -L and name that)", e.host)
	}
	return e, nil
}

func envTLS(e endpoint, getenv func(string) string) endpoint {
	dir := getenv("DOCKER_CERT_PATH")
	if dir == "" && getenv("DOCKER_TLS_VERIFY") != "" {
		dir = configDir(getenv)
	}
	if dir != "" {
		e.ca, e.cert, e.key = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	}
	return e
}

func configDir(getenv func(string) string) string {
	if dir := getenv("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home := getenv(name); home != "" {
			return filepath.Join(home, ".docker")
		}
	}
	return ""
}

// contextEngine reads a context of the docker command: its files are named
// after the hash of its name.
func contextEngine(dir, name string) (endpoint, error) {
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	var meta struct {
		Endpoints map[string]struct {
			Host string
		}
	}
	if err := readJSON(filepath.Join(dir, "contexts", "meta", id, "meta.json"), &meta); err != nil {
		return endpoint{}, fmt.Errorf("context %q: %w", name, err)
	}
	e := endpoint{host: meta.Endpoints["docker"].Host}
	if e.host == "" {
		return endpoint{}, fmt.Errorf("context %q names no docker endpoint", name)
	}
	for file, dst := range map[string]*string{"ca.pem": &e.ca, "cert.pem": &e.cert, "key.pem": &e.key} {
		path := filepath.Join(dir, "contexts", "tls", id, "docker", file)
		if _, err := os.Stat(path); err == nil {
			*dst = path
		}
	}
	return e, nil
}

func readJSON(path string, into any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := json.NewDecoder(io.LimitReader(f, maxConfigFile)).Decode(into); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

func defaultHost(getenv func(string) string) string {
	if runtime.GOOS == "windows" {
		return client.DefaultDockerHost
	}
	candidates := []string{strings.TrimPrefix(client.DefaultDockerHost, "unix://")}
	if home := getenv("HOME"); home != "" {
		candidates = append(candidates, filepath.Join(home, ".docker/run/docker.sock"))
	}
	if run := getenv("XDG_RUNTIME_DIR"); run != "" {
		candidates = append(candidates, filepath.Join(run, "docker.sock"), filepath.Join(run, "podman/podman.sock"))
	}
	candidates = append(candidates, "/run/podman/podman.sock")
	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
			return "unix://" + path
		}
	}
	return client.DefaultDockerHost
}
