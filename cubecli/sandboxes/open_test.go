package sandboxes_test

import (
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
)

func TestMain(m *testing.M) { sandboxes.TestMain(m) }

// TestOpenRefusals: what cannot be opened is refused with what to do.
func TestOpenRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environment string
		options     sandboxes.Options
		want        string
	}{
		{"modal", sandboxes.Options{}, `environment "modal" cannot be run here`},
		{"docker", sandboxes.Options{Runtime: "runc"}, "it is for -e sandbox and -e host"},
		{"host", sandboxes.Options{Environ: []string{"PROCTOR_STATE_DIR=" + t.TempDir(), "PROCTOR_CACHE_DIR=" + t.TempDir(), "PATH="}, Runtime: "/nowhere/runtime"}, "/nowhere/runtime"},
	} {
		b, closeBackend, err := sandboxes.Open(t.Context(), c.environment, c.options)
		if err == nil || b != nil || closeBackend != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want %q", c.environment, b, err, c.want)
		}
	}
}
