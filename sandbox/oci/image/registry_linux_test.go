package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

func TestCredentials(t *testing.T) {
	t.Parallel()
	f, host := newFlaky(t)
	push(t, host+"/private", sample(t))
	handle := func(w http.ResponseWriter, r *http.Request) bool {
		user, password, ok := r.BasicAuth()
		if ok && user == "me" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	f.handle.Store(&handle)
	s := openStore(t, t.TempDir(), Options{})
	_, err := s.Pull(t.Context(), host+"/private", nil)
	wantError[*source.UnauthorizedError](t, err)
	if errors.Is(err, sandbox.ErrImageNotFound) {
		t.Error("a refused image counts as not found")
	}

	s = openStore(t, t.TempDir(), Options{Keychain: keychain{user: "me", password: "secret"}})
	checkSample(t, mustPull(t, s, host+"/private"))

	s = openStore(t, t.TempDir(), Options{Keychain: keychain{user: "me", password: "hunter2"}})
	_, err = s.Pull(t.Context(), host+"/private", nil)
	wantError[*source.UnauthorizedError](t, err)
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error %q tells the password", err)
	}

	s = openStore(t, t.TempDir(), Options{Keychain: keychain{err: errTest}})
	if _, err := s.Pull(t.Context(), host+"/private", nil); err == nil || !strings.Contains(err.Error(), "refuses") {
		t.Errorf("with a broken keychain: got %v", err)
	}
	f.handle.Store(nil)
	checkSample(t, mustPull(t, s, host+"/private"))
}

type keychain struct {
	user, password string
	err            error
}

func (k keychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	if k.err != nil {
		return nil, k.err
	}
	return authn.FromConfig(authn.AuthConfig{Username: k.user, Password: k.password}), nil
}

func TestPlainHTTPIsForThisMachineOnly(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	s := openStore(t, t.TempDir(), Options{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Scheme == "http" {
			reached.Store(true)
		}
		return nil, fmt.Errorf("no route to %s", r.URL.Host)
	})})
	for _, ref := range []string{"10.0.0.1:5000/a", "192.168.1.1/a", "registry.local/a", "example.org/a"} {
		if _, err := s.Pull(t.Context(), ref, nil); err == nil {
			t.Errorf("pulling %q succeeded", ref)
		}
	}
	if reached.Load() {
		t.Error("a registry elsewhere was asked without TLS")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPullCancelled(t *testing.T) {
	t.Parallel()
	f, host := newFlaky(t)
	img := bigImage(t)
	push(t, host+"/img", img)
	ctx, cancel := context.WithCancelCause(t.Context())
	handle := func(w http.ResponseWriter, r *http.Request) bool {
		if !isLayer(r, img) {
			return false
		}
		cancel(errTest)
		<-r.Context().Done()
		return true
	}
	f.handle.Store(&handle)
	s := openStore(t, t.TempDir(), Options{})
	if _, err := s.Pull(ctx, host+"/img", nil); !errors.Is(err, errTest) {
		t.Errorf("got %v, want the cause of the cancellation", err)
	}
	assertNoLeftovers(t, s)
	f.handle.Store(nil)
	mustPull(t, s, host+"/img")
}
