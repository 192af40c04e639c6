package enginesocket_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/internal/enginesocket"
)

func TestShown(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{
		"XDG_RUNTIME_DIR": dir + "/runtime", "DOCKER_HOST": "unix://" + dir + "/engine/here.sock", "HOME": dir + "/home",
	}
	sockets := enginesocket.Known(func(name string) string { return variables[name] })
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/var/run/docker.sock", link); err != nil {
		t.Fatal(err)
	}
	up := filepath.Join(dir, "up")
	if err := os.Symlink("/var", up); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		source, target string
		shown          bool
	}{
		{"/", "/x", true},
		{"/var", "/x", true},
		{"/var/run", "/x", true},
		{"/run", "/x", true},
		{"//var/./lib/../run//docker.sock/", "/x", true},
		{"/run/docker.sock", "/x", true},
		{"/var/run/dstack.sock", "/x", true},
		{"/run/podman", "/x", true},
		{"/run/containerd/containerd.sock", "/x", true},
		{link, "/x", true},
		{up, "/x", true},
		{up + "/run", "/x", true},
		{dir + "/runtime", "/x", true},
		{dir + "/runtime/podman/podman.sock", "/x", true},
		{dir + "/engine", "/x", true},
		{dir + "/engine/here.sock", "/x", true},
		{"/srv", "/var/run/docker.sock", true},
		{"/srv", "/var/run", true},
		{"", "/run", true},
		{"/var/running", "/x", false},
		{"/var/run/docker.sock.bak", "/x", false},
		{dir + "/engine/other", "/x", false},
		{"/srv", "/var/running", false},
		{"", "/data", false},
	} {
		if got := enginesocket.Shown(test.source, test.target, sockets); (got != "") != test.shown {
			t.Errorf("a mount of %q at %q shows %q, want a socket: %t", test.source, test.target, got, test.shown)
		}
	}
}
