package docker_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// testImage is made by .ci/base-image.
const testImage = "debian:12"

// newBackend returns the backend of the engine that is there and has the image.
func newBackend(t testing.TB) *docker.Backend {
	t.Helper()
	b, err := docker.New(docker.Options{Host: need.Image(t, testImage), Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func labels(t testing.TB) sandbox.Labels {
	t.Helper()
	self, err := sandbox.Self()
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Labels{Job: "test", Trial: t.Name(), Owner: self}
}

func TestContract(t *testing.T) {
	need.Image(t, testImage)
	world := &sandboxtest.World{}
	sandboxtest.Run(t, sandboxtest.Config{
		New:   func(t testing.TB) sandbox.Backend { return newBackendIn(t, world) },
		World: world,
		Spec:  sandbox.Spec{Image: sandbox.Image{Ref: testImage}, Labels: labels(t)},
	})
}

// newBackendIn returns a backend whose egress proxy reaches a test's world.
func newBackendIn(t testing.TB, world *sandboxtest.World) *docker.Backend {
	t.Helper()
	program := guestProgram(t)
	b, err := docker.New(docker.Options{
		Host: need.Image(t, testImage), Getenv: os.Getenv, Egress: world.Upstream(),
		Guest: func(context.Context) (string, error) { return program, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func BenchmarkEgress(b *testing.B) {
	need.Image(b, testImage)
	world := &sandboxtest.World{}
	sandboxtest.BenchmarkEgress(b, sandboxtest.Config{
		New:   func(t testing.TB) sandbox.Backend { return newBackendIn(t, world) },
		World: world,
		Spec:  sandbox.Spec{Image: sandbox.Image{Ref: testImage}, Labels: labels(b)},
	}, "172.17.0.1") // the engine's default bridge
}

// guestProgram builds the program that carries connections out of containers.
func guestProgram(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "proctor-guest")
	cmd := exec.Command(need.Program(t, "go"), "build", "-buildvcs=false", "-o", path, "github.com/proctor-run/proctor/cmd/proctor-guest")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the guest program: %v: %s", err, out)
	}
	return path
}
