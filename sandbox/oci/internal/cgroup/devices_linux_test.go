package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
)

// unifiedRoot mounts version 2 of control groups.
func unifiedRoot(t *testing.T) string {
	t.Helper()
	need.Root(t)
	root, err := os.MkdirTemp("", "cgroup")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	err = unix.Mount("cgroup2", root, "cgroup2", 0, "")
	need.That(t, "cgroups", err == nil, "needs version 2 of control groups")
	t.Cleanup(func() {
		if err := unix.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	})
	return root
}

// TestUnifiedGuard: a process in a group of version 2 can make the node of any device,
// and open those alone that a container has.
func TestUnifiedGuard(t *testing.T) {
	t.Parallel()
	root := unifiedRoot(t)
	id := "proctor-test-" + strconv.Itoa(os.Getpid())
	g, err := (&Place{dir: root}).Make(id, Wanted{Devices: true, Shown: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Close()
		if err := os.Remove(filepath.Join(root, parentGroup, id)); err != nil {
			t.Error(err)
		}
	})
	if _, err := guard(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for device, want := range map[string]bool{
		"c 1 3": true, "c 1 5": true, "c 1 9": true,
		"c 1 1": false, "c 1 11": false, "c 5 1": false, "c 10 200": false, "b 1 3": false, "b 254 0": false,
	} {
		node := filepath.Join(dir, strings.ReplaceAll(device, " ", "-"))
		cmd := exec.Command("sh", "-c", "mknod -m 600 "+node+" "+device+" && { true < "+node+" || true; }")
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		g.StartIn(cmd)
		out, err := cmd.CombinedOutput()
		if refused := strings.Contains(string(out), "not permitted"); err != nil || refused == want {
			t.Errorf("device %s: %v, %q, want it opened: %v", device, err, out, want)
		}
	}
}
