package sandboxes

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestPostureOfTheEngine holds what is measured in a container, which is what doctor
// says, against what the engine says of it.
func TestPostureOfTheEngine(t *testing.T) {
	t.Parallel()
	const image = "debian:12"
	api, err := client.New(client.WithHost(need.Image(t, image)))
	if err != nil {
		t.Fatal(err)
	}
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	d := diagnoseEnvironment(t.Context(), Options{Environ: os.Environ()}, sandbox.BackendDocker)
	if d.Posture == nil || d.Posture.Hardened == nil {
		t.Fatalf("doctor has measured nothing: %+v", d)
	}
	for _, hardened := range []bool{false, true} {
		said := d.Posture.Default
		if hardened {
			said = *d.Posture.Hardened
		}
		b, err := newDocker(Options{Hardened: hardened, Environ: os.Environ()})
		if err != nil {
			t.Fatal(err)
		}
		sb, err := b.Create(t.Context(), sandbox.Spec{
			Name: "posture", Image: sandbox.Image{Ref: image}, Labels: sandbox.Labels{Job: "test", Trial: "posture", Owner: self},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := sb.Destroy(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		got, err := measure(t.Context(), sb)
		if err != nil {
			t.Fatal(err)
		}
		if got != said {
			t.Errorf("hardened %t: doctor says %v, a container has %v", hardened, said, got)
		}
		inspected, err := api.ContainerInspect(t.Context(), sb.ID(), client.ContainerInspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		host := inspected.Container.HostConfig
		limit := int64(0)
		if host.PidsLimit != nil {
			limit = *host.PidsLimit
		}
		asked := Posture{
			NoNewPrivileges: slices.Contains(host.SecurityOpt, "no-new-privileges"),
			ReadOnlyRoot:    host.ReadonlyRootfs, GuardedTmp: host.Tmpfs["/tmp"] != "", PIDs: limit,
			Network: host.NetworkMode != "none", Seccomp: got.Seccomp, Capabilities: got.Capabilities,
		}
		if got != asked {
			t.Errorf("hardened %t: a container has %v, the engine says %v", hardened, got, asked)
		}
		if dropped := slices.Equal(host.CapDrop, []string{"ALL"}); dropped != (got.Capabilities == 0) || dropped != hardened {
			t.Errorf("hardened %t: the engine drops %v, a command has %d capabilities", hardened, host.CapDrop, got.Capabilities)
		}
	}
}

// vanishing is a backend whose first image is removed before a sandbox is made of it.
type vanishing struct {
	*fake.Backend
	images []string
}

func (b *vanishing) LocalImages(context.Context) ([]string, error) { return b.images, nil }

func (b *vanishing) Create(_ context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if spec.Image.Ref == "removed" {
		b.images = []string{"broken", "good"}
	}
	return nil, fmt.Errorf("no sandbox of %s", spec.Image.Ref)
}

// TestImageThatIsRemovedMeanwhile: the next one is tried; one that is there and does not
// work is the answer.
func TestImageThatIsRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	b := &vanishing{fake.New(fake.Config{Dir: t.TempDir()}), []string{"removed", "broken", "good"}}
	var d Diagnosis
	if d.measured(t.Context(), b); d.Posture != nil || d.Unmeasured != "no sandbox of broken" {
		t.Errorf("got %+v", d)
	}
}
