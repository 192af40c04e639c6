package image

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	memregistry "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// newPrivateRegistry starts a registry that gives nothing out without a name
// and a password, and holds the sample as img.
func newPrivateRegistry(t *testing.T) (host string) {
	t.Helper()
	mem := memregistry.New(memregistry.Logger(quiet()))
	open := httptest.NewServer(mem)
	t.Cleanup(open.Close)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "s3cret" {
			w.Header().Set("Www-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mem.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	n, err := name.ParseReference(strings.TrimPrefix(open.URL, "http://") + "/img")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(n, sample(t)); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(srv.URL, "http://")
}

func writeBelow(t *testing.T, dir, path, text string, mode os.FileMode) {
	t.Helper()
	at := filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// TestDockerCredentials: a private image is pulled with what docker's or
// podman's configuration says, inline or by a helper.
func TestDockerCredentials(t *testing.T) { // sets PATH
	host := newPrivateRegistry(t)
	auths := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte("ann:s3cret")))
	helpers := fmt.Sprintf(`{"credHelpers":{%q:"proctortest"}}`, host)
	bin := t.TempDir()
	writeBelow(t, bin, "docker-credential-proctortest",
		"#!/bin/sh\ncat >/dev/null\necho '{\"Username\":\"ann\",\"Secret\":\"s3cret\"}'\n", 0o755)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, c := range []struct {
		name, path, text string
		env              map[string]string // DIR stands for the directory
		refused          bool
	}{
		{"docker login", ".docker/config.json", auths, map[string]string{"HOME": "DIR"}, false},
		{"DOCKER_CONFIG", "here/config.json", auths, map[string]string{"HOME": "/nowhere", "DOCKER_CONFIG": "DIR/here"}, false},
		{"helper", ".docker/config.json", helpers, map[string]string{"HOME": "DIR"}, false},
		{"podman login", "containers/auth.json", auths, map[string]string{"HOME": "/nowhere", "XDG_RUNTIME_DIR": "DIR"}, false},
		{"REGISTRY_AUTH_FILE", "keys", auths, map[string]string{"REGISTRY_AUTH_FILE": "DIR/keys"}, false},
		{"for another registry", ".docker/config.json", strings.ReplaceAll(auths, host, "example.org"), map[string]string{"HOME": "DIR"}, true},
		{"none", "", "", map[string]string{"HOME": "DIR"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.path != "" {
				writeBelow(t, dir, c.path, c.text, 0o600)
			}
			getenv := func(key string) string { return strings.ReplaceAll(c.env[key], "DIR", dir) }
			s := openStore(t, t.TempDir(), Options{Keychain: DockerKeychain(getenv)})
			img, err := s.Pull(t.Context(), host+"/img", nil)
			if c.refused {
				if err == nil || !strings.Contains(err.Error(), "refuses access") {
					t.Fatalf("pulling: %v, want that access is refused", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkSample(t, img)
		})
	}
}

// TestBrokenCredentials: a configuration that cannot be read is named when a
// private image needs it, without what is in it.
func TestBrokenCredentials(t *testing.T) {
	t.Parallel()
	host := newPrivateRegistry(t)
	dir := t.TempDir()
	writeBelow(t, dir, ".docker/config.json", `{"auths": "s3cret"`, 0o600)
	s := openStore(t, t.TempDir(), Options{Keychain: DockerKeychain(func(key string) string { return map[string]string{"HOME": dir}[key] })})
	_, err := s.Pull(t.Context(), host+"/img", nil)
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("pulling: %v, want an error without the file's content", err)
	}
}
