package build

import (
	"context"
	"runtime"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"

	"github.com/proctor-run/proctor/sandbox/buildcontext"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// Settings are what a Dockerfile says about the commands that run in its image.
type Settings struct {
	Env     []string // KEY=VALUE
	User    string   // empty when it says nothing
	Workdir string   // empty when it says nothing
}

// Describe reads the Dockerfile of a context without building anything. What
// the images say that it begins with is not known. Without a Dockerfile the
// error is fs.ErrNotExist.
func Describe(ctx context.Context, contextDir string) (Settings, error) {
	text, err := buildcontext.ReadDockerfile(contextDir)
	if err != nil {
		return Settings{}, err
	}
	return describe(ctx, text)
}

func describe(ctx context.Context, text string) (Settings, error) {
	p, err := parse(text, runtime.GOARCH)
	if err != nil {
		return Settings{}, err
	}
	st, err := p.evaluate(ctx, untouched{})
	if err != nil {
		return Settings{}, err
	}
	return Settings{Env: st.env.env(), User: st.user, Workdir: st.workdir}, nil
}

// untouched leaves all files as they are.
type untouched struct{}

func (untouched) base(string) image.Image { return image.Image{} }
func (untouched) begin(string)            {}

func (untouched) run(context.Context, *state, *instructions.RunCommand, func(string) (image.Image, error)) error {
	return nil
}

func (untouched) copy(context.Context, *state, *copying) error { return nil }
func (untouched) makeWorkdir(context.Context, *state) error    { return nil }
