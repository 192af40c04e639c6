package docker

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// TestSilentEngine: each cause is said once, apart from what helps.
func TestSilentEngine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, host, reason, fix string }{
		{"nothing", "unix:///no/such.sock", "no engine answers at unix:///no/such.sock: no such file or directory", "start Docker"},
		{"nobody listens", "unix://" + stale, "no engine answers at unix://" + stale, "start Docker"},
		{"nobody listens at a port", "tcp://127.0.0.1:1", "no engine answers at tcp://127.0.0.1:1", "start Docker"},
		{"ssh", "ssh://far", `finding the engine: address "ssh://far": ssh is not spoken here`, "ssh -L"},
		{"no address", "no address", "", "DOCKER_HOST"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := New(Options{Engine: tt.host, AllowRemote: true})
			if err == nil {
				err = b.Check(t.Context())
			}
			checkWhy(t, err, tt.reason, tt.fix)
		})
	}
}

// TestForbiddenEngine: a socket that belongs to others is not one that is missing.
func TestForbiddenEngine(t *testing.T) {
	t.Parallel()
	const host = "unix:///var/run/docker.sock"
	checkWhy(t, silent(host, errors.New("permission denied while trying to connect to the docker API at "+host)),
		"this user may not use the engine at "+host+": permission denied", "add your user to the group")
}

func checkWhy(t *testing.T, err error, wantReason, wantFix string) {
	t.Helper()
	if err == nil {
		t.Fatal("it works")
	}
	reason, fix := sandbox.Why(err)
	if wantReason != "" && reason != wantReason || !strings.Contains(fix, wantFix) || strings.Contains(fix, "another sandbox") {
		t.Errorf("got reason %q and fix %q, want %q and %q", reason, fix, wantReason, wantFix)
	}
}
