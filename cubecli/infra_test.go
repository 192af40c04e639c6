package cubecli_test

import (
	"context"
	"slices"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/sandbox"
)

// place provisions everything and notes it.
type place struct {
	infra.InfraConfigBase
	provisioned []string
}

func (*place) TypeName() string       { return "guess.infra.Place" }
func (*place) Fingerprint() string    { return "place" }
func (*place) Capabilities() []string { return []string{"kvm"} }

func (*place) ProvisionStatus(context.Context, infra.Resource) (infra.ProvisionStatus, error) {
	return infra.NeedsProvisioning, nil
}

func (p *place) Provision(_ context.Context, r infra.Resource) error {
	p.provisioned = append(p.provisioned, r.Base().Name)
	return nil
}

func (*place) Launch(context.Context, infra.Resource) (infra.Handle, error) {
	return nil, cube.RuntimeErrorf("nothing is launched here")
}

// TestInfra: what a benchmark needs is provisioned by every command that sets it up;
// without an infra it is not run.
func TestInfra(t *testing.T) {
	t.Parallel()
	c := guess{needs: []infra.Resource{infra.NewVMResourceConfig("desktop")}}.cube()
	newProgram(t, c).job("j").want(t, exitcode.Failed, `guess needs "desktop"`, "which nothing provisions")
	for _, args := range [][]string{{"run"}, {"test"}, {"test", "--reference"}} {
		own := &place{}
		c.Infra = func(sandbox.Backend) (cube.Infra, error) { return own, nil }
		p := newProgram(t, c)
		if args[0] == "run" {
			p.job("j").want(t, exitcode.OK, "Mean 1.000")
		} else {
			p.run(args...).want(t, exitcode.OK)
		}
		if !slices.Contains(own.provisioned, "desktop") {
			t.Errorf("%q provisioned %q", args, own.provisioned)
		}
	}
}
