// Package need lets tests say what they cannot do without.
//
// On a machine that lacks it the test is skipped with a reason. Where the
// environment variable PROCTOR_REQUIRE lists the need, a missing one fails the
// test instead, so that continuous integration cannot skip by accident. The list
// is comma-separated; "all" is every need, and "-patience" all the same not that
// one.
package need

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Root skips unless the test runs as root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "root", "needs root")
	}
}

// Docker skips unless an Engine socket answers, and returns its address.
func Docker(t testing.TB) string {
	t.Helper()
	const socket = "/var/run/docker.sock"
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		return host
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		missing(t, "docker", "needs a Docker Engine at "+socket)
		return ""
	}
	_ = conn.Close()
	return "unix://" + socket
}

// Program skips unless a program ("runc", "crun", "python3") is on the PATH,
// and returns its path.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, name, "needs "+name+" on the PATH")
	}
	return path
}

// RootfsVar is the environment variable that names an uncompressed tar of a small
// Debian root file system.
const RootfsVar = "PROCTOR_TEST_ROOTFS"

// Rootfs skips unless there is such a root file system, and returns its path.
func Rootfs(t testing.TB) string {
	t.Helper()
	path := os.Getenv(RootfsVar)
	if path == "" {
		missing(t, "rootfs", "needs "+RootfsVar+", a tar of a Debian root file system")
	}
	return path
}

// Patience skips tests that take minutes unless PROCTOR_REQUIRE lists them.
func Patience(t testing.TB) {
	t.Helper()
	if !Required("patience") {
		t.Skip("takes minutes; PROCTOR_REQUIRE=patience runs it")
	}
}

// That skips with the reason unless ok; name is what PROCTOR_REQUIRE lists.
func That(t testing.TB, name string, ok bool, reason string) {
	t.Helper()
	if !ok {
		missing(t, name, reason)
	}
}

// Required reports whether PROCTOR_REQUIRE lists a need.
func Required(name string) bool { return listed(os.Getenv("PROCTOR_REQUIRE"), name) }

func listed(list, name string) bool {
	needs := strings.Split(list, ",")
	return !slices.Contains(needs, "-"+name) && (slices.Contains(needs, name) || slices.Contains(needs, "all"))
}

func missing(t testing.TB, name, reason string) {
	t.Helper()
	if Required(name) {
		t.Fatalf("%s, and PROCTOR_REQUIRE says it must be there", reason)
	}
	t.Skip(reason)
}
