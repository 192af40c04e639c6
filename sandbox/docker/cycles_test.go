package docker_test

import (
	"testing"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

func TestCycles(t *testing.T) {
	t.Parallel()
	cycles := 8
	if need.Required("patience") {
		cycles = 1000
	}
	spec := sandbox.Spec{Image: sandbox.Image{Ref: testImage}, Labels: labels(t), Resources: sandbox.Resources{CPUs: 1, MemoryMB: 256}}
	sandboxtest.Cycles(t, newBackend(t), spec, cycles)
	mine := make(client.Filters).Add("label", "proctor.trial="+trialOf(t))
	containers, err := api(t).ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: mine})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(containers.Items); n > 0 {
		t.Errorf("%d containers are left", n)
	}
	networks, err := api(t).NetworkList(t.Context(), client.NetworkListOptions{Filters: mine})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(networks.Items); n > 0 {
		t.Errorf("%d networks are left", n)
	}
	volumes, err := api(t).VolumeList(t.Context(), client.VolumeListOptions{Filters: mine})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(volumes.Items); n > 0 {
		t.Errorf("%d volumes are left", n)
	}
}
