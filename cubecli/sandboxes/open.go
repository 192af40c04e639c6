package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/sandbox/oci"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// Auto is the environment that lets Choose choose.
const Auto = "auto"

// Environments lists the environments that can be opened.
func Environments() []string {
	return []string{sandbox.BackendDocker, sandbox.BackendSandbox, sandbox.BackendHost}
}

// Open opens an environment: "auto", for which an empty name stands too,
// "docker", "sandbox" or "host". It makes sure that it works here, with
// sandbox.ErrUnavailable as the error when it does not, and removes what killed
// programs left behind. closeBackend releases what the backend holds open.
func Open(ctx context.Context, environment string, o Options) (b sandbox.Backend, closeBackend func() error, err error) {
	o = o.orProcess()
	name, err := Choose(ctx, environment, o)
	if err != nil {
		return nil, nil, err
	}
	b, closeBackend, err = New(ctx, name, o)
	if err != nil {
		return nil, nil, err
	}
	if err := checkOnce(ctx, o, b); err != nil {
		return nil, nil, errors.Join(err, closeBackend())
	}
	removed, err := Collect(ctx, b)
	if err != nil {
		o.Notice(fmt.Sprintf("warning: %v", err))
	}
	for _, line := range removed {
		o.Notice("left behind by a killed run: " + line)
	}
	if b.Capabilities().OwnRoot {
		o.Notice("-e host shows this machine's own files to the agent (home directories and credentials masked): for demos and trusted agents only")
	}
	return b, closeBackend, nil
}

// Collect removes what dead owners left in a backend, and lists it.
func Collect(ctx context.Context, b sandbox.Backend) ([]string, error) {
	collector, ok := b.(sandbox.Collector)
	if !ok {
		return nil, nil
	}
	removed, err := collector.Collect(ctx, procid.ID.Alive)
	if err != nil {
		return removed, fmt.Errorf("cleaning up behind killed runs (%s): %w", b.Name(), err)
	}
	return removed, nil
}

// Choose resolves "auto", for which an empty name stands too: docker if an
// engine answers, else sandbox; sandbox when a runtime is asked for.
func Choose(ctx context.Context, environment string, o Options) (string, error) {
	if environment != Auto && environment != "" {
		return environment, checkRuntime(o.Runtime, environment)
	}
	if o.Runtime != "" || !engineWorks(ctx, o.orProcess()) {
		return sandbox.BackendSandbox, nil
	}
	return sandbox.BackendDocker, nil
}

// checkRuntime refuses a runtime for environments that have none to choose.
func checkRuntime(runtime, environment string) error {
	if runtime == "" || environment == sandbox.BackendSandbox || environment == sandbox.BackendHost {
		return nil
	}
	return exitcode.Usagef("--runtime %s: environment %s does not run commands with it; it is for -e sandbox and -e host", runtime, environment)
}

func engineWorks(ctx context.Context, o Options) bool {
	b, err := newDocker(o)
	return err == nil && b.Check(ctx) == nil
}

// New makes the backend of an environment other than "auto". It does not look
// whether it works here.
func New(ctx context.Context, environment string, o Options) (b sandbox.Backend, closeBackend func() error, err error) {
	if !hooked.Load() {
		return nil, nil, errNoHook
	}
	o = o.orProcess()
	switch environment {
	case sandbox.BackendDocker:
		b, err := newDocker(o)
		if err != nil {
			return nil, nil, err
		}
		return b, func() error { return nil }, nil
	case sandbox.BackendSandbox, sandbox.BackendHost:
		return newOCI(ctx, environment, o)
	}
	return nil, nil, exitcode.WithHint(exitcode.Usagef("environment %q cannot be run here", environment), "choose one of these with -e: %s", strings.Join(Environments(), ", "))
}

func newDocker(o Options) (*docker.Backend, error) {
	return docker.New(docker.Options{PIDs: o.PIDs, Getenv: o.getenv, Environ: o.Environ, Now: clock.Or(o.Now), Guest: dockerGuest(o), Build: version.Current().ID(), Egress: o.Egress})
}

func newOCI(ctx context.Context, name string, o Options) (sandbox.Backend, func() error, error) {
	opts, closeStore, err := ociOptions(ctx, name, o)
	if err != nil {
		return nil, nil, err
	}
	b, err := oci.New(opts)
	if err != nil {
		return nil, nil, errors.Join(err, closeStore())
	}
	return b, closeStore, nil
}

// Runtimes says which OCI runtimes can be used on this machine.
func Runtimes(ctx context.Context, o Options) ([]oci.RuntimeStatus, error) {
	opts, closeStore, err := ociOptions(ctx, sandbox.BackendHost, o.orProcess())
	if err != nil {
		return nil, err
	}
	return oci.Runtimes(ctx, opts), closeStore()
}

// OwnNetwork returns nil when public sandboxes without a container engine have a
// network of their own on this machine, and otherwise why not, and what to do.
func OwnNetwork() (fix string, err error) { return oci.OwnNetwork() }

// ociOptions are the options of the daemonless backends on this machine.
func ociOptions(ctx context.Context, name string, o Options) (opts oci.Options, closeStore func() error, err error) {
	dirs, err := FindDirectories(o.getenv)
	if err != nil {
		return opts, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return opts, nil, fmt.Errorf("finding the program: %w", err)
	}
	// The host's own files have the libraries that this program may need.
	needsStatic := name != sandbox.BackendHost || o.Runtime == "" || o.Runtime == oci.RuntimeGVisor
	if needsStatic && !o.Cleaning {
		if self, err = staticProgram(ctx, o, self, dirs.Cache); err != nil {
			return opts, nil, err
		}
	}
	guest := ""
	if !o.Cleaning {
		guest = guestOf(ctx, o, self, dirs.Cache)
	}
	opts = oci.Options{
		Host:       name == sandbox.BackendHost,
		StateDir:   filepath.Join(dirs.State, "sandboxes"),
		Executable: self,
		Guest:      guest,
		Build:      version.Current().ID(),
		Runtime:    o.Runtime,
		PIDs:       o.PIDs,
		Now:        clock.Or(o.Now),
		Egress:     o.Egress,
		Mask:       slices.Concat(o.Mask, []string{dirs.State, dirs.Cache}),
	}
	if opts.Host {
		return opts, func() error { return nil }, nil
	}
	limit, err := CacheLimit(o.getenv)
	if err != nil {
		return opts, nil, err
	}
	store, err := image.Open(dirs.Images(), image.Options{Mirrors: o.Mirrors, Keychain: image.DockerKeychain(o.getenv), Limit: limit})
	if err != nil {
		return opts, nil, err
	}
	opts.Images = store
	return opts, store.Close, nil
}
