package oci

import (
	"bytes"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
)

// TestMemoryLimit: what takes more memory than the limit is killed, and the
// sandbox continues.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	for _, name := range []string{RuntimeRunc, RuntimeCrun} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			b := newBackend(t, testOptions(t, name))
			need.Root(t)
			need.That(t, "cgroups", b.Capabilities().MemoryLimit, "needs a cgroup file system that can be written")
			s := create(t, b, sandbox.Spec{Resources: sandbox.Resources{MemoryMB: 64, CPUs: 1}})
			var out bytes.Buffer
			st, err := s.Exec(t.Context(), sandbox.Command{Shell: "head -c 200M /dev/zero | tail | wc -c", Stdout: &out})
			if err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(out.String()) == "209715200" {
				t.Errorf("200 MB were held in 64 MB: %v, %s", st, out.String())
			}
			say(t, s, "true")
		})
	}
}
