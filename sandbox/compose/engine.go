package compose

import (
	"context"
	"net/netip"
	"time"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
)

// Engine is the container engine that projects are brought up on. All fields
// are needed, but for Environ.
type Engine struct {
	API    *client.Client
	Images Images
	// Main makes the sandbox of a project of the container of its service
	// main, which runs.
	Main func(id, name string, spec sandbox.Spec) Container
	// Local says that the engine is on this machine, with its networks.
	Local bool
	// Environ holds the variables, KEY=VALUE, that the files may refer to
	// besides those of the Spec.
	Environ []string
	// Subnets is where networks get their addresses from.
	Subnets []netip.Prefix
	// Now is the clock.
	Now func() time.Time
}

// Container is a container that commands can be run in.
type Container interface {
	sandbox.Sandbox
	sandbox.Stopper
}

// Image is what a container is made of.
type Image struct {
	// Ref is the name to make a container of, ID what the engine calls it.
	Ref, ID string
	// Entrypoint: the image has one.
	Entrypoint bool
}

// Build is a build: a directory and what is said about it.
type Build struct {
	Name       string // for messages
	Dir        string
	Dockerfile string // name in the directory; empty means Dockerfile
	Text       string // of a Dockerfile that is not in the directory, or empty
	Options    client.ImageBuildOptions
	Force      bool // even when an image of the same content is there
	Keep       bool // the image, for further runs
}

// Images fetches and builds images. Progress, which may be nil, receives what
// is being done.
type Images interface {
	// Built returns the image of a build, which is run unless an image of the
	// same content is there.
	Built(ctx context.Context, build Build, progress func(string)) (Image, error)
	// Pulled returns an image, from a registry when the engine has none. The
	// platform is OS/ARCHITECTURE[/VARIANT]; empty means the engine's own.
	Pulled(ctx context.Context, ref, platform string, progress func(string)) (Image, error)
	// Pull asks the registry, whatever the engine has.
	Pull(ctx context.Context, ref, platform string, progress func(string)) error
	// Inspect returns an image that the engine has.
	Inspect(ctx context.Context, ref string) (Image, error)
	// Tag gives an image a further name.
	Tag(ctx context.Context, source, target string) error
}
