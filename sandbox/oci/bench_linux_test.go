package oci

import (
	"testing"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// BenchmarkSandbox is a sandbox's whole life with one command, on the host's root.
func BenchmarkSandbox(b *testing.B) {
	for _, name := range runtimeNames() {
		b.Run(name, func(b *testing.B) {
			needRuntime(b, name)
			backend := newBackend(b, testOptions(b, name))
			for b.Loop() {
				s, err := backend.Create(b.Context(), sandbox.Spec{Name: "bench"})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Exec(b.Context(), sandbox.Command{Argv: []string{"true"}}); err != nil {
					b.Fatal(err)
				}
				if err := s.Destroy(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEgress(b *testing.B) {
	for _, name := range runtimeNames() {
		b.Run(name, func(b *testing.B) {
			needRuntime(b, name)
			world := &sandboxtest.World{}
			sandboxtest.BenchmarkEgress(b, sandboxtest.Config{World: world, New: func(t testing.TB) sandbox.Backend {
				opts := testOptions(t, name)
				opts.Egress = world.Upstream()
				return newBackend(t, opts)
			}}, "127.0.0.1")
		})
	}
}
