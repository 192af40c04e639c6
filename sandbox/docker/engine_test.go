package docker

import (
	"errors"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/enginesocket"
	"github.com/proctor-run/proctor/sandbox"
)

func TestUntrustedEngines(t *testing.T) {
	t.Parallel()
	tls := map[string]string{"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/no/such"}
	for _, tt := range []struct {
		name, host       string
		env              map[string]string
		hardened, remote bool
		refused          bool
	}{
		{name: "a socket", host: "unix:///no/such.sock"},
		{name: "a socket, hardened", host: "unix:///no/such.sock", hardened: true},
		{name: "plain TCP", host: "tcp://far:2375", refused: true},
		{name: "plain TCP to this machine", host: "tcp://127.0.0.1:2375", refused: true},
		{name: "plain TCP to this machine, version 6", host: "tcp://[::1]:2375", refused: true},
		{name: "HTTP", host: "http://far:2375", refused: true},
		{name: "plain TCP that is let pass", host: "tcp://far:2375", remote: true},
		{name: "plain TCP that is let pass, hardened", host: "tcp://far:2375", remote: true, hardened: true, refused: true},
		{name: "TLS", host: "tcp://far:2376", env: tls},
		{name: "TLS, hardened", host: "tcp://far:2376", env: tls, hardened: true, refused: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, err := enginesocket.Find(tt.host, func(k string) string { return tt.env[k] })
			if err != nil {
				t.Fatal(err)
			}
			err = trusted(e, Options{Hardened: tt.hardened, AllowRemote: tt.remote})
			if errors.Is(err, ErrUntrusted) != tt.refused || err != nil != tt.refused {
				t.Errorf("got %v, want it refused: %t", err, tt.refused)
			}
		})
	}
	_, err := New(Options{Engine: "tcp://127.0.0.1:2375"})
	if !errors.Is(err, sandbox.ErrUnavailable) || !errors.Is(err, ErrUntrusted) || !strings.Contains(err.Error(), "--allow-remote-engine") {
		t.Errorf("got %v, want one that is sandbox.ErrUnavailable and names the flag", err)
	}
}
