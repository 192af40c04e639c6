package enginesocket_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/enginesocket"
)

func TestFind(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	id := func(name string) string {
		sum := sha256.Sum256([]byte(name))
		return hex.EncodeToString(sum[:])
	}
	write(".docker/config.json", `{"auths": {}, "currentContext": "desk"}`)
	write(".docker/contexts/meta/"+id("desk")+"/meta.json", `{"Name": "desk", "Endpoints": {"docker": {"Host": "unix:///desk.sock"}}}`)
	write(".docker/contexts/meta/"+id("far")+"/meta.json", `{"Name": "far", "Endpoints": {"docker": {"Host": "tcp://far:2376"}}}`)
	write(".docker/contexts/tls/"+id("far")+"/docker/ca.pem", "x")
	write(".docker/contexts/meta/"+id("shell")+"/meta.json", `{"Endpoints": {"docker": {"Host": "ssh://user@far"}}}`)
	write(".docker/contexts/meta/"+id("other")+"/meta.json", `{"Endpoints": {"kubernetes": {}}}`)
	write("broken/config.json", `{`)
	for _, tt := range []struct {
		name, given string
		env         map[string]string
		want        string
		tls         bool
		err         string
	}{
		{name: "given", given: "unix:///given.sock", env: map[string]string{"DOCKER_HOST": "unix:///env.sock"}, want: "unix:///given.sock"},
		{name: "DOCKER_HOST", env: map[string]string{"DOCKER_HOST": "unix:///env.sock", "HOME": home, "DOCKER_CONTEXT": "far"}, want: "unix:///env.sock"},
		{name: "DOCKER_HOST with TLS", env: map[string]string{"DOCKER_HOST": "tcp://h:2376", "HOME": home, "DOCKER_TLS_VERIFY": "1"}, want: "tcp://h:2376", tls: true},
		{name: "the current context", env: map[string]string{"HOME": home}, want: "unix:///desk.sock"},
		{name: "on Windows", env: map[string]string{"USERPROFILE": home}, want: "unix:///desk.sock"},
		{name: "DOCKER_CONTEXT", env: map[string]string{"HOME": home, "DOCKER_CONTEXT": "far"}, want: "tcp://far:2376", tls: true},
		{name: "DOCKER_CONFIG", env: map[string]string{"DOCKER_CONFIG": filepath.Join(home, ".docker"), "HOME": "/no/such"}, want: "unix:///desk.sock"},
		{name: "an unknown context", env: map[string]string{"HOME": home, "DOCKER_CONTEXT": "nowhere"}, err: `context "nowhere"`},
		{name: "a context without docker", env: map[string]string{"HOME": home, "DOCKER_CONTEXT": "other"}, err: `context "other"`},
		{name: "ssh", env: map[string]string{"HOME": home, "DOCKER_CONTEXT": "shell"}, err: "ssh"},
		{name: "a broken configuration", env: map[string]string{"DOCKER_CONFIG": filepath.Join(home, "broken")}, err: "config.json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, err := enginesocket.Find(tt.given, func(k string) string { return tt.env[k] })
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got error %v, want one that says %q", err, tt.err)
				}
				return
			}
			if err != nil || e.Host != tt.want || e.TLS() != tt.tls {
				t.Errorf("got %+v, %v; want host %q, TLS %v", e, err, tt.want, tt.tls)
			}
		})
	}
}

func TestDefaultSockets(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("named pipes are not files")
	}
	if _, err := os.Stat("/var/run/docker.sock"); err == nil {
		t.Skip("the default socket is there and comes first")
	}
	dir, err := os.MkdirTemp("", "run") // short: socket paths are
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "podman"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "podman/podman.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	e, err := enginesocket.Find("", func(k string) string { return map[string]string{"XDG_RUNTIME_DIR": dir}[k] })
	if err != nil || e.Host != "unix://"+path {
		t.Errorf("got %+v, %v; want Podman's socket", e, err)
	}
}
