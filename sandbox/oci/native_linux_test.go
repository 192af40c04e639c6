package oci

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/internal/cgroup"
	"github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"
)

// outputOf runs a shell text, whatever its exit code, and returns what it wrote.
func outputOf(t *testing.T, s sandbox.Sandbox, shell string) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := s.Exec(t.Context(), sandbox.Command{Shell: shell, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// TestNativeRights: commands have the rights that they have with runc, and not
// more. Root of the sandbox cannot get at the supervisor.
func TestNativeRights(t *testing.T) {
	t.Parallel()
	need.Root(t)
	b := newBackend(t, testOptions(t, RuntimeNative))
	s := create(t, b, sandbox.Spec{Network: sandbox.Network{Mode: sandbox.NetworkNone}})
	const sets = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"
	have := outputOf(t, s, sets)
	if _, err := runtimes.Find(RuntimeRunc); err == nil {
		other := create(t, newBackend(t, testOptions(t, RuntimeRunc)), sandbox.Spec{Network: sandbox.Network{Mode: sandbox.NetworkNone}})
		if want := outputOf(t, other, sets); cgroup.GuardsDevices() && have != want {
			t.Errorf("rights are\n%s\nwith runc they are\n%s", have, want)
		}
	}
	if !strings.Contains(have, "CapAmb:\t0000000000000000") || !strings.Contains(have, "CapInh:\t0000000000000000") || !strings.Contains(have, "Seccomp:\t2") {
		t.Errorf("rights are\n%s", have)
	}
	for shell, want := range map[string]string{
		"mount -t tmpfs x /mnt": "permi",
		"unshare -U true":       "not permitted",
		"unshare -m true":       "not permitted",
		"cat /proc/1/environ; ls /proc/1/fd; cat /proc/1/mem":          "ermission denied",
		"readlink /proc/1/exe || echo hidden":                          "hidden",
		"kill -9 1; kill -TERM 1; echo alive":                          "alive",
		"echo 1 > /proc/sys/kernel/panic":                              "Read-only",
		"echo x > /.proctor/proctor-guest":                             "Read-only",
		"touch /sys/x":                                                 "Read-only",
		"head -c1 /proc/kcore | wc -c":                                 "0",
		"ls -A /sys/firmware | wc -l":                                  "0",
		"ls /dev":                                                      "core fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero",
		"umask":                                                        "0022",
		"stat -c %a /dev/null /dev/shm /dev/pts/ptmx":                  "666 1777 666",
		"cat /sys/class/net/lo/operstate; ls /sys/class/net":           "unknown lo",
		"test \"$(hostname)\" = \"$(cat /etc/hostname)\" && echo same": "same",
	} {
		if got := strings.Join(strings.Fields(outputOf(t, s, shell)), " "); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", shell, got, want)
		}
	}
	if cgroup.GuardsDevices() {
		got := outputOf(t, s, "mknod /disk b 254 0 && head -c1 /disk; rm -f /disk")
		if !strings.Contains(got, "ermi") {
			t.Errorf("the node of a disk: %q", got)
		}
	}
	say(t, s, "true")
}

// TestNativeInherited: what the calling process has open by accident is not open
// in commands.
func TestNativeInherited(t *testing.T) {
	t.Parallel()
	need.Root(t)
	fd, err := unix.Open(t.TempDir(), unix.O_RDONLY|unix.O_DIRECTORY, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	s := create(t, newBackend(t, testOptions(t, RuntimeNative)), sandbox.Spec{})
	for line := range strings.Lines(outputOf(t, s, "for f in /proc/$$/fd/*; do readlink $f; done")) {
		if to := strings.TrimSpace(line); !strings.HasPrefix(to, "pipe:") && !strings.HasPrefix(to, "/dev/") && !strings.HasPrefix(to, "/proc/") {
			t.Errorf("a command has open %q", to)
		}
	}
}

// TestNativeLinks: where mounts go is decided inside the sandbox's root, also
// when its directories are links that lead out of it.
func TestNativeLinks(t *testing.T) {
	t.Parallel()
	need.Root(t)
	b := newBackend(t, testOptions(t, RuntimeNative))
	outside, inside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(inside, "link")); err != nil {
		t.Fatal(err)
	}
	source := t.TempDir()
	s := create(t, b, sandbox.Spec{Mounts: []sandbox.Mount{
		{Source: inside, Target: "/given"}, {Source: source, Target: "/given/link/below"},
	}})
	say(t, s, "test -d "+outside+"/below")
	if list, err := os.ReadDir(outside); err != nil || len(list) != 0 {
		t.Errorf("a link led out of the sandbox: %v, %v", list, err)
	}
}
