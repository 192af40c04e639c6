package docker_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/sandbox/internal/enginetest"
)

// TestComposeFaults lets each call to the engine fail once, by an answer and by a cut
// connection: nothing is left of the images that a project is given and of its service
// main, or the error says what.
func TestComposeFaults(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		total := 0
		for failAt := 0; failAt <= total; failAt++ {
			e, host := enginetest.New(t)
			b, err := docker.New(docker.Options{Engine: host})
			if err != nil {
				t.Fatal(err)
			}
			e.FailAt, e.Vanish = failAt, cut
			spec := composeSpec(t, map[string]string{"Dockerfile": "FROM scratch\n", "docker-compose.yaml": "services: {main: {}, side: {build: .}}\n"})
			spec.Image = sandbox.Image{Ref: "img"}
			var said []string
			spec.Warn = func(m string) { said = append(said, m) }
			sb, err := b.Create(t.Context(), spec)
			if failAt == 0 {
				if err != nil {
					t.Fatal(err)
				}
				total = e.Calls
				if !slices.ContainsFunc(said, func(m string) bool { return strings.Contains(m, "there is no supervisor program") }) {
					t.Errorf("said %q, want that the engine supervises", said)
				}
			}
			if err == nil {
				// What only looks is asked once more when the connection is cut.
				if failAt > 0 && (!cut || !strings.HasPrefix(e.Failed, http.MethodGet)) {
					t.Errorf("call %d, %s: no error", failAt, e.Failed)
				}
				if err := sb.Destroy(t.Context()); err != nil {
					t.Errorf("call %d, %s: %v", failAt, e.Failed, err)
				}
			}
			if left := e.Left(); len(left) > 0 {
				t.Errorf("call %d, %s: left are %q after %v", failAt, e.Failed, left, err)
			}
		}
		t.Logf("%d calls failed in turn, connection cut: %v", total, cut)
	}
}
