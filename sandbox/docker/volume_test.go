package docker_test

import (
	"context"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
)

// TestVolumes: a named volume is there for the next sandbox, one without a name
// goes with its own.
func TestVolumes(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	api, err := client.New(client.WithHost(need.Docker(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = api.Close() }()
	const name = "proctor-test-volume"
	t.Cleanup(func() {
		_, _ = api.VolumeRemove(context.Background(), name, client.VolumeRemoveOptions{Force: true})
	})
	for i, command := range []string{"echo kept > /kept/f && touch /own/f", "cat /kept/f && ls /own"} {
		sb, err := b.Create(t.Context(), sandbox.Spec{
			Name: t.Name(), Labels: labels(t), Image: sandbox.Image{Ref: testImage},
			Mounts: []sandbox.Mount{{Source: name, Target: "/kept", Volume: true}, {Target: "/own", Volume: true}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		status, err := sb.Exec(t.Context(), sandbox.Command{Shell: command, Stdout: &out})
		if err != nil || status.Code != 0 || i == 1 && out.String() != "kept\n" {
			t.Errorf("%s: %+v %v %q", command, status, err, out.String())
		}
		if err := sb.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := api.VolumeInspect(t.Context(), name, client.VolumeInspectOptions{}); err != nil {
		t.Errorf("the named volume is gone: %v", err)
	}
}
