package compose

import (
	"context"
	"net"
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
	// Main starts the container of a project's service main.
	Main func(spec sandbox.Spec) Main
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

// Main is the start of the container of a service main, and of the sandbox that
// it is. Its methods are called in their order.
type Main interface {
	// Prepare changes what the engine is asked for.
	Prepare(ctx context.Context, o *client.ContainerCreateOptions, img Image) error
	// Created is called when the container is there, Started when it runs.
	Created(ctx context.Context, id string) error
	Started(ctx context.Context, id string) error
	// Ended reports whether the service's own command has ended while the
	// container runs, with its exit code and the last that it wrote.
	Ended() (ended bool, code int, output string)
	// Container is the sandbox.
	Container(id, name string) Container
	// Abort ends what the others began, when there will be no sandbox.
	Abort()
}

// Container is a container that commands can be run in.
type Container interface {
	sandbox.Sandbox
	sandbox.Stopper
	sandbox.Restarter
	sandbox.ProcessLister
	sandbox.Supervised
	sandbox.Imaged
	// Listen is that of package egress.
	Listen(ctx context.Context) (net.Listener, error)
}

// Image is what a container is made of.
type Image struct {
	// Ref is the name to make a container of, ID what the engine calls it.
	Ref, ID string
	// What its containers are, where they do not say otherwise.
	Entrypoint, Cmd []string
	User, Workdir   string
	Env             []string
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
