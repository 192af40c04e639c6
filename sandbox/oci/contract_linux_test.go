package oci

import (
	"testing"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// needRuntime skips unless the runtime can be used by a test as root.
func needRuntime(t testing.TB, name string) {
	t.Helper()
	need.Root(t)
	if name != RuntimeGVisor {
		need.Program(t, name)
	}
}

func runtimeNames() []string { return []string{RuntimeGVisor, RuntimeRunc, RuntimeCrun} }

func TestContractHost(t *testing.T) {
	t.Parallel()
	for _, name := range runtimeNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			sandboxtest.Run(t, sandboxtest.Config{
				New:  func(t testing.TB) sandbox.Backend { return newBackend(t, testOptions(t, name)) },
				Spec: sandbox.Spec{Name: "contract"},
			})
		})
	}
}

func newBackend(t testing.TB, opts Options) *Backend {
	t.Helper()
	b, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
