package harborcube_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube"
	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestCubeNetworks: a task as a cube has the network of its environment, or is
// refused. Phases cannot have their own.
func TestCubeNetworks(t *testing.T) {
	t.Parallel()
	const listed = "[environment]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"a.com\"]\n"
	none := sandbox.Capabilities{Mounted: true, Build: true, NoNetwork: true}
	for name, c := range map[string]struct {
		toml string
		can  *sandbox.Capabilities
		want string // of the error
	}{
		"enforced":            {toml: listed},
		"cannot be enforced":  {listed, &none, "network_mode='allowlist' is not supported"},
		"another agent phase": {toml: "[agent]\nnetwork_mode = \"no-network\"\n", want: "cannot change network policy after start"},
	} {
		backend := fake.New(fake.Config{Dir: t.TempDir(), Capabilities: c.can})
		cfg, err := harborcube.NewTaskConfig(cubeDir(t, c.toml))
		if err != nil {
			t.Fatal(err)
		}
		task, err := cfg.Make(t.Context(), cube.RuntimeContext{}, cube.NewLocalContainerBackend(backend))
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) || backend.Count(fake.OpCreate) != 0 {
				t.Errorf("%s: got %v, want %q", name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n := backend.Calls()[0].Spec.Network
		if n.Mode != sandbox.NetworkAllowlist || !slices.Equal(n.Hosts, []string{"a.com"}) || n.Switchable {
			t.Errorf("%s: got %+v", name, n)
		}
		if err := task.Close(t.Context()); err != nil {
			t.Error(err)
		}
		fake.Verify(t, backend)
	}
}
