package oci

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
	"github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// needRuntime skips unless the runtime can be used by the test's user.
func needRuntime(t testing.TB, name string) {
	t.Helper()
	if name != RuntimeGVisor {
		_, err := runtimes.Find(name)
		need.That(t, name, err == nil, "needs "+name)
	}
	if os.Geteuid() != 0 {
		need.That(t, "userns", userNamespaces(), "needs root, or user namespaces for ordinary users")
	}
}

// userNamespaces reports whether an ordinary user is root in a new user namespace.
func userNamespaces() bool {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	return cmd.Run() == nil
}

func runtimeNames() []string { return []string{RuntimeGVisor, RuntimeNative, RuntimeRunc, RuntimeCrun} }

func TestContractHost(t *testing.T) {
	t.Parallel()
	for _, name := range runtimeNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			if name == RuntimeRunc || name == RuntimeCrun { // namespaces of the host's kernel are native's too
				need.Patience(t)
			}
			world := &sandboxtest.World{}
			sandboxtest.Run(t, sandboxtest.Config{
				New: func(t testing.TB) sandbox.Backend {
					opts := testOptions(t, name)
					opts.Egress = world.Upstream()
					return newBackend(t, opts)
				},
				World:   world,
				Outside: network.Try(tunPath) == nil,
				Spec:    sandbox.Spec{Name: "contract"},
				OneUser: oneUser(),
			})
		})
	}
}

func oneUser() bool { return os.Geteuid() != 0 && !runtimes.CallerUsers(true).Ranged() }

func newBackend(t testing.TB, opts Options) *Backend {
	t.Helper()
	b, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
