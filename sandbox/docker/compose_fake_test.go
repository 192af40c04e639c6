package docker_test

import (
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
	enginetest.EachCallFails(t, func(e *enginetest.Engine, host string) (enginetest.Made, error) {
		b, err := docker.New(docker.Options{Engine: host, AllowRemote: true})
		if err != nil {
			t.Fatal(err)
		}
		spec := composeSpec(t, map[string]string{"Dockerfile": "FROM scratch\n", "docker-compose.yaml": "services: {main: {}, side: {build: .}}\n"})
		spec.Image = sandbox.Image{Ref: "img"}
		var said []string
		spec.Warn = func(m string) { said = append(said, m) }
		sb, err := b.Create(t.Context(), spec)
		if e.FailAt == 0 && !slices.ContainsFunc(said, func(m string) bool { return strings.Contains(m, "there is no supervisor program") }) {
			t.Errorf("said %q, want that the engine supervises", said)
		}
		return sb, err
	})
}
