// Package docker runs sandboxes as containers of a Docker Engine, or of Podman
// through its Docker socket. It speaks the Engine API and needs no client
// program.
//
// Begin with [New] and [Backend.Check].
//
// # How Harbor's behaviour is kept
//
// One sandbox is one container on the engine's default network, or on none:
// no network of its own is made. The image's entrypoint is kept and gets a
// shell that waits as its command, as Compose does it; when the entrypoint ends
// the container ends. There is no init process, no restart policy and no
// auto-remove; the waiting shell reaps orphans. The environment of the Spec is set for
// commands, not on the container.
//
// With [sandbox.Spec.Compose] the sandbox is the service main of a compose
// project, see package compose.
//
// # Commands
//
// The first process of a container is the guest, see package guest: the
// supervisor of everything in it, mounted from this machine or copied. One
// connection with it carries commands, files and kills; it is attached before
// the container starts, and when it breaks the guest ends, and the container
// with it. What the container would have run, the image's entrypoint with a
// command that waits or the compose service's own, runs beside the commands.
//
// Nothing in the container reaches the guest: signals from inside do not, its
// memory and descriptors are closed to processes without CAP_SYS_PTRACE, which
// engines do not give, and its program cannot be written. That processes are
// gone is proven by the guest, which sees all of the container's process
// namespace, and held against the engine's own list.
//
// Where a container cannot have a guest (no program for the engine's
// processor, an engine that refuses it, a compose service without the
// capabilities), commands run by the engine's exec. Then nothing in the container
// is asked to end anything: ending one command, or everything since a mark,
// starts the container anew, which ends all that runs in it.
// [Container.Supervision] says which of the two it is.
//
// # Built images
//
// An image is built once for each content of its build context and tagged
// proctor-build:HASH. It outlives its sandboxes: the next trial and the next
// run reuse it. [Backend.Collect] removes those that were not used for some days
// and that were not built with KeepImage.
package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/internal/enginesocket"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/compose"
	"github.com/proctor-run/proctor/sandbox/egress"
)

var (
	_ sandbox.Backend   = (*Backend)(nil)
	_ sandbox.Collector = (*Backend)(nil)
)

// Options of a Backend. The zero value is the engine on the default socket.
type Options struct {
	// Engine is the engine's address: unix:///path, npipe:////path, tcp://host:port.
	// Empty means what the environment and the user's configuration name.
	Engine string
	// Getenv looks up DOCKER_HOST, DOCKER_CONTEXT, DOCKER_CONFIG,
	// DOCKER_CERT_PATH, DOCKER_TLS_VERIFY, DOCKER_API_VERSION, HOME,
	// USERPROFILE, XDG_RUNTIME_DIR and PROCTOR_DOCKER_SUBNETS. Nil means an
	// empty environment.
	Getenv func(string) string
	// ImageTTL is how long a built image is kept without being used; 0 means
	// DefaultImageTTL.
	ImageTTL time.Duration
	// Now is the clock for ImageTTL and for the log of the egress proxy; nil
	// means time.Now.
	Now func() time.Time
	// Guest finds the guest program (package guest) for the engine's
	// containers: a Linux program without shared libraries, for the processor
	// that Go calls arch. It is the supervisor of containers. Without it the
	// engine alone supervises them, and there are neither allow lists nor
	// networks that change.
	Guest func(ctx context.Context, arch string) (path string, err error)
	// Build is the version that the guest must have, see guest.Options.
	Build string
	// Egress is how the egress proxy reaches the world; the zero value is
	// this machine's resolver and network.
	Egress egress.Upstream
	// PIDs is how many processes and threads a container may have whose
	// Resources.PIDs is 0; 0 means sandbox.DefaultPIDs, less means no limit.
	// Services of compose projects have what their file says.
	PIDs int64
	// Hardened makes every container as if its Spec asked for it.
	Hardened bool
	// CollectKept lets Collect and Survey find what was made to be kept, too.
	CollectKept bool
	// AllowRemote lets the engine be spoken to over TCP without TLS, where
	// everybody on the way is the engine's master. With Hardened no TCP is spoken.
	AllowRemote bool
	// Environ holds the variables, KEY=VALUE, that the files of a compose
	// project may refer to, besides those of the Spec: what the docker command
	// would find in its own environment.
	Environ []string
	// Subnets is where the networks of compose projects get their addresses
	// from; nil means those of PROCTOR_DOCKER_SUBNETS, separated by commas, or
	// compose.DefaultSubnets.
	Subnets []netip.Prefix
}

// defaultImageTTL is how long Collect leaves a built image that is not used.
const defaultImageTTL = 7 * 24 * time.Hour

// Backend creates sandboxes on one engine.
type Backend struct {
	api      *client.Client
	host     string // address, for messages
	local    bool   // the engine sees this machine's files
	imageTTL time.Duration
	pids     int64
	hardened bool
	kept     bool // is collected too
	now      func() time.Time
	guest    func(context.Context, string) (string, error) // nil for none
	version  string                                        // of the guest
	egress   egress.Upstream
	projects *compose.Engine

	images keyed // pulls and builds under way, by reference

	mu         sync.Mutex
	services   map[string]bool // by image ID: its entrypoint is a program of its own, and does not carry on with the command
	supervisor supervisor

	rootless rootless
}

// New returns the backend for the engine that the options name. It does not
// connect; see Check. An address that cannot be used gives an error that wraps
// sandbox.ErrUnavailable.
func New(o Options) (*Backend, error) {
	getenv := o.Getenv
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	at, err := enginesocket.Find(o.Engine, getenv)
	if err != nil {
		return nil, unfound(err)
	}
	if err := trusted(at, o); err != nil {
		return nil, err
	}
	options := []client.Opt{client.WithHost(at.Host), client.WithUserAgent("proctor")}
	if at.TLS() {
		options = append(options, client.WithTLSClientConfig(at.CA, at.Cert, at.Key))
	}
	if v := getenv("DOCKER_API_VERSION"); v != "" {
		options = append(options, client.WithAPIVersion(v))
	}
	api, err := client.New(options...)
	if err != nil {
		return nil, &sandbox.UnavailableError{Err: fmt.Errorf("engine address %q: %w", at.Host, err), Fix: "correct DOCKER_HOST or, for TLS, DOCKER_CERT_PATH"}
	}
	b := &Backend{
		api:      api,
		host:     at.Host,
		local:    at.Local(),
		imageTTL: cmp.Or(o.ImageTTL, defaultImageTTL),
		pids:     cmp.Or(o.PIDs, sandbox.DefaultPIDs),
		now:      clock.Or(o.Now),
		hardened: o.Hardened,
		kept:     o.CollectKept,
		guest:    o.Guest,
		version:  o.Build,
		egress:   o.Egress,
		services: make(map[string]bool),
	}
	subnets := o.Subnets
	if subnets == nil {
		if subnets, err = compose.ParseSubnets(getenv(compose.SubnetsVar)); err != nil {
			return nil, err
		}
	}
	b.projects = &compose.Engine{
		API: b.api, Images: projectImages{b}, Local: b.local, Environ: o.Environ, Subnets: subnets, Now: b.now,
		Main: func(spec sandbox.Spec) compose.Main { return &mainService{launch{b: b, spec: spec, way: byEngine}} },
	}
	return b, nil
}

// Name is sandbox.BackendDocker.
func (b *Backend) Name() string { return sandbox.BackendDocker }

// Capabilities of the engine. Bind mounts show the host's files only when the
// engine is on this machine.
func (b *Backend) Capabilities() sandbox.Capabilities {
	return sandbox.Capabilities{
		Mounted:   b.local,
		Build:     true,
		Compose:   true,
		Volumes:   true,
		Keep:      true,
		NoNetwork: true,
		Allowlist: b.guest != nil, SwitchNetwork: b.guest != nil,
		CPULimit:    true,
		MemoryLimit: true,
		PIDsLimit:   true,
		Hardened:    b.guest != nil && b.local,
	}
}

// accepts refuses what no container of this backend can be.
func (b *Backend) accepts(spec sandbox.Spec) error {
	if err := b.hardenable(spec); err != nil {
		return err
	}
	if spec.Compose != nil {
		return compose.Accepts(spec)
	}
	switch spec.Network.Mode {
	case "", sandbox.NetworkPublic, sandbox.NetworkNone:
	case sandbox.NetworkAllowlist:
		if b.guest == nil {
			return fmt.Errorf("network mode %q: %w: %w", spec.Network.Mode, sandbox.ErrUnsupported, errNoGuest)
		}
	default:
		return fmt.Errorf("network mode %q: %w", spec.Network.Mode, sandbox.ErrUnsupported)
	}
	if spec.Network.Switchable && b.guest == nil {
		return fmt.Errorf("changing the network of a running container: %w: %w", sandbox.ErrUnsupported, errNoGuest)
	}
	if spec.Resources.GPUs > 0 {
		return fmt.Errorf("%d GPUs: %w", spec.Resources.GPUs, sandbox.ErrUnsupported)
	}
	if spec.Image.Ref == "" && spec.Image.Build == nil {
		return errors.New("neither an image nor a build is named")
	}
	return nil
}
