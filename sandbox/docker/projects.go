package docker

import (
	"context"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
)

// ProjectJSON returns the merged model of a Spec's compose project, see
// [compose.Engine.JSON].
func (b *Backend) ProjectJSON(ctx context.Context, spec sandbox.Spec) ([]byte, error) {
	return b.projects.JSON(ctx, spec)
}

// projectImages are the images of compose projects.
type projectImages struct{ b *Backend }

func (p projectImages) Built(ctx context.Context, build compose.Build, progress func(string)) (compose.Image, error) {
	return p.b.builtFrom(ctx, build, progress)
}

func (p projectImages) Pulled(ctx context.Context, ref, platform string, progress func(string)) (compose.Image, error) {
	return p.b.pulledFor(ctx, ref, platform, progress)
}

func (p projectImages) Pull(ctx context.Context, ref, platform string, progress func(string)) error {
	return p.b.pull(ctx, ref, platform, progress)
}

func (p projectImages) Inspect(ctx context.Context, ref string) (compose.Image, error) {
	return p.b.inspect(ctx, ref)
}

func (p projectImages) Tag(ctx context.Context, source, target string) error {
	return p.b.tag(ctx, source, target)
}
