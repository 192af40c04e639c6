package enginesocket

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
	"slices"
	"strings"
)

// Endpoint is where an engine listens, an address in the docker command's words,
// and the files of its TLS identity.
type Endpoint struct {
	Host          string
	CA, Cert, Key string
}

// TLS reports whether the engine has to say who it is.
func (e Endpoint) TLS() bool { return e.CA != "" || e.Cert != "" }

// Local reports whether the engine is reached without a network.
func (e Endpoint) Local() bool {
	return strings.HasPrefix(e.Host, "unix:") || strings.HasPrefix(e.Host, "npipe:")
}

// maxConfigFile bounds what is read of the user's Docker configuration.
const maxConfigFile = 1 << 20

// Find decides which engine is meant. As the docker command does: the
// given host, DOCKER_HOST, the context of DOCKER_CONTEXT, the context that the
// configuration file names, the default socket. Besides, where the default
// socket is missing, the usual sockets of rootless engines and of Podman.
func Find(host string, getenv func(string) string) (Endpoint, error) {
	if host == "" {
		host = getenv("DOCKER_HOST")
	}
	if host != "" {
		return checked(envTLS(Endpoint{Host: host}, getenv))
	}
	dir := configDir(getenv)
	name := getenv("DOCKER_CONTEXT")
	if name == "" && dir != "" {
		var config struct {
			CurrentContext string `json:"currentContext"`
		}
		if err := readJSON(filepath.Join(dir, "config.json"), &config); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Endpoint{}, err
		}
		name = config.CurrentContext
	}
	if name != "" && name != "default" {
		e, err := contextEngine(dir, name)
		if err != nil {
			return Endpoint{}, err
		}
		return checked(e)
	}
	return Endpoint{Host: defaultHost(getenv)}, nil
}

// ErrSSH marks the address of an engine behind ssh.
var ErrSSH = errors.New("ssh is not spoken here")

func checked(e Endpoint) (Endpoint, error) {
	if strings.HasPrefix(e.Host, "ssh:") {
		return Endpoint{}, fmt.Errorf("address %q: %w", e.Host, ErrSSH)
	}
	return e, nil
}

func envTLS(e Endpoint, getenv func(string) string) Endpoint {
	dir := getenv("DOCKER_CERT_PATH")
	if dir == "" && getenv("DOCKER_TLS_VERIFY") != "" {
		dir = configDir(getenv)
	}
	if dir != "" {
		e.CA, e.Cert, e.Key = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
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
func contextEngine(dir, name string) (Endpoint, error) {
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	var meta struct {
		Endpoints map[string]struct {
			Host string
		}
	}
	if err := readJSON(filepath.Join(dir, "contexts", "meta", id, "meta.json"), &meta); err != nil {
		return Endpoint{}, fmt.Errorf("context %q: %w", name, err)
	}
	e := Endpoint{Host: meta.Endpoints["docker"].Host}
	if e.Host == "" {
		return Endpoint{}, fmt.Errorf("context %q names no docker endpoint", name)
	}
	for file, dst := range map[string]*string{"ca.pem": &e.CA, "cert.pem": &e.Cert, "key.pem": &e.Key} {
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
		return "npipe:////./pipe/docker_engine"
	}
	for _, path := range slices.Concat([]string{Docker}, usersOwn(getenv), []string{podman}) {
		if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
			return "unix://" + path
		}
	}
	return "unix://" + Docker
}
