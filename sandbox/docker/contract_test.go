package docker_test

import (
	"os"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// testImage is made by .ci/base-image.
const testImage = "debian:12"

// newBackend returns the backend of the engine that is there.
func newBackend(t testing.TB) *docker.Backend {
	t.Helper()
	b, err := docker.New(docker.Options{Host: need.Docker(t), Getenv: os.Getenv})
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
	need.Docker(t)
	sandboxtest.Run(t, sandboxtest.Config{
		New:  func(t testing.TB) sandbox.Backend { return newBackend(t) },
		Spec: sandbox.Spec{Image: sandbox.Image{Ref: testImage}, Labels: labels(t)},
	})
}
