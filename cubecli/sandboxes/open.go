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
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/sandbox/oci"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// Open opens a backend: the name of an entry, or "auto", for which an empty name
// stands too. It makes sure that it works here, with an error of usage that is
// sandbox.ErrUnavailable and has advice when it does not, and removes what killed programs left behind.
// closeBackend releases what the backend holds open.
func Open(ctx context.Context, environment string, o Options) (b sandbox.Backend, closeBackend func() error, err error) {
	o = o.orProcess()
	name, err := Choose(ctx, environment, o)
	if err != nil {
		return nil, nil, err
	}
	b, closeBackend, err = New(ctx, name, o)
	if errors.Is(err, oci.ErrShow) {
		return nil, nil, exitcode.Usagef("environment %s: %w", name, err)
	}
	if err != nil {
		return nil, nil, unusable(name, err)
	}
	if err := check(ctx, o, b); err != nil {
		return nil, nil, errors.Join(unusable(name, err), closeBackend())
	}
	if err := refusal(name, b.Capabilities(), o); err != nil {
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
		o.Notice("-e " + name + " shows this machine's own files to the agent (its programs and their settings, and what --ek show names): for demos and trusted agents only")
	}
	return b, closeBackend, nil
}

// refusal is what an environment that works cannot do of what is asked; nil for nothing.
func refusal(name string, can sandbox.Capabilities, o Options) error {
	refuse := func(format string, args ...any) error {
		return exitcode.Usagef("%w: %w", fmt.Errorf(format, args...), sandbox.ErrUnsupported)
	}
	switch {
	case len(o.Show) > 0 && !can.OwnRoot:
		return refuse("environment %s: setting show: %q is not shown, as its sandboxes have the files of an image", name, o.Show[0])
	case o.Hardened && !can.Hardened:
		return refuse("environment %s cannot harden its sandboxes", name)
	case o.HostNetwork && name != sandbox.BackendSandbox && name != sandbox.BackendHost:
		return exitcode.WithHint(refuse("environment %s cannot let its sandboxes share this machine's network", name), "network=host is for -e sandbox and -e host")
	case o.Keep && !can.Keep:
		return exitcode.WithHint(refuse("--no-delete: environment %s cannot keep sandboxes, whose processes end with this program", name),
			"use -e docker; 'proctor trial attach' follows a trial while it runs")
	}
	return nil
}

// unusable makes an environment that does not work here an error of the command line,
// with what to do about it as the hint: nothing was run.
func unusable(name string, err error) error {
	if !errors.Is(err, sandbox.ErrUnavailable) {
		return err
	}
	reason, fix := sandbox.Why(err)
	refused := exitcode.Usagef("%w", &unusableError{text: fmt.Sprintf("environment %s does not work here: %s", name, reason), err: err})
	if fix == "" {
		return refused
	}
	return exitcode.WithHint(refused, "%s", fix)
}

// unusableError leaves the advice to the hint.
type unusableError struct {
	text string
	err  error
}

func (e *unusableError) Error() string { return e.text }
func (e *unusableError) Unwrap() error { return e.err }

// Choose resolves "auto", for which an empty name stands too: the first entry for
// it that works here, among those with runtimes when one is asked for. The last of
// them is not tried. What it took and why is told to Options.Chosen.
func Choose(ctx context.Context, environment string, o Options) (string, error) {
	if environment != Auto && environment != "" {
		return environment, checkRuntime(o, environment)
	}
	var candidates []Entry
	for _, e := range o.Backends.Entries() {
		if e.Auto && (o.Runtime == "" || o.Backends.HasRuntimes(e)) {
			candidates = append(candidates, e)
		}
	}
	c := Choice{Runtime: o.Runtime}
	for i, e := range candidates {
		var err error
		if i < len(candidates)-1 {
			err = works(ctx, e, o.orProcess())
		}
		if err == nil {
			c.Name = e.Name
			c.tell(o, e)
			return e.Name, nil
		}
		c.Passed = append(c.Passed, Passed{Name: e.Name, Err: err})
	}
	return "", exitcode.WithHint(exitcode.Usagef("no environment is chosen"), "choose one of these with -e: %s", strings.Join(o.Backends.Names(), ", "))
}

// Choice is what "auto" came to.
type Choice struct {
	// Name is of the entry, Runtime what runs its sandboxes; empty where there is no
	// choice of them.
	Name, Runtime string
	// Passed are the entries before it, which do not work here.
	Passed []Passed
}

// Passed is an entry that "auto" passed over, and why.
type Passed struct {
	Name string
	Err  error
}

// Meant reports whether somebody meant an entry that was passed over: it is there,
// and is not trusted.
func (p Passed) Meant() bool { return errors.Is(p.Err, docker.ErrUntrusted) }

// String is the choice in one line.
func (c Choice) String() string {
	text := "-e " + Auto + " takes " + c.Name
	if c.Runtime != "" {
		text += " with runtime " + c.Runtime
	}
	for _, p := range c.Passed {
		reason, _ := sandbox.Why(p.Err)
		text += fmt.Sprintf("; it passes over %s: %s", p.Name, reason)
	}
	return text
}

func (c Choice) tell(o Options, e Entry) {
	if c.Runtime == "" && o.Backends.HasRuntimes(e) {
		c.Runtime = oci.RuntimeGVisor
	}
	if o.Chosen != nil {
		o.Chosen(c)
		return
	}
	if slices.ContainsFunc(c.Passed, Passed.Meant) {
		o.orProcess().Notice(c.String())
	}
}

// works returns why a backend cannot be made or does not work.
func works(ctx context.Context, e Entry, o Options) error {
	b, release, err := e.New(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(b.Check(ctx), release())
}

// checkRuntime refuses a runtime for backends that have none to choose.
func checkRuntime(o Options, environment string) error {
	with := names(o.Backends.withRuntimes())
	switch {
	case o.Runtime == "" || slices.Contains(with, environment):
		return nil
	case len(with) == 0:
		return exitcode.Usagef("--runtime %s: no environment of this program has runtimes to choose", o.Runtime)
	}
	return exitcode.Usagef("--runtime %s: environment %s does not run commands with it; it is for -e %s", o.Runtime, environment, strings.Join(with, " and -e "))
}

// New makes the backend of an entry. It does not look whether it works here.
func New(ctx context.Context, environment string, o Options) (b sandbox.Backend, closeBackend func() error, err error) {
	if !hooked.Load() {
		return nil, nil, errNoHook
	}
	e, err := o.Backends.find(environment)
	if err != nil {
		return nil, nil, err
	}
	b, closeBackend, err = e.New(ctx, o.orProcess())
	if err != nil {
		return nil, nil, err
	}
	if b.Name() != e.Name {
		// What ran would be recorded under another name than it is chosen by.
		return nil, nil, errors.Join(fmt.Errorf("the backend of environment %s calls itself %s", e.Name, b.Name()), closeBackend())
	}
	return b, closeBackend, nil
}

func newDockerBackend(_ context.Context, o Options) (sandbox.Backend, func() error, error) {
	b, err := newDocker(o)
	if err != nil {
		return nil, nil, err
	}
	return b, func() error { return nil }, nil
}

func newDocker(o Options) (*docker.Backend, error) {
	return docker.New(docker.Options{PIDs: o.PIDs, Hardened: o.Hardened, CollectKept: o.CollectKept, AllowRemote: o.AllowRemoteEngine, Getenv: o.getenv, Environ: o.Environ, Now: clock.Or(o.Now), Guest: dockerGuest(o), Build: version.Current().ID(), Egress: o.Egress})
}

// newOCIOf makes one of the daemonless backends.
func newOCIOf(name string) func(context.Context, Options) (sandbox.Backend, func() error, error) {
	return func(ctx context.Context, o Options) (sandbox.Backend, func() error, error) {
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
}

func ociRuntimes(ctx context.Context, o Options) ([]oci.RuntimeStatus, error) {
	o.Runtime = oci.RuntimeNative // gVisor's program is looked for below
	opts, closeStore, err := ociOptions(ctx, sandbox.BackendHost, o)
	if err != nil {
		return nil, err
	}
	dirs, err := FindDirectories(o.getenv)
	if err != nil {
		return nil, errors.Join(err, closeStore())
	}
	var lacking error
	opts.GVisor, lacking = gvisorOf(ctx, o, opts.Executable, dirs.Cache)
	all := oci.Runtimes(ctx, opts)
	for i := range all {
		if r := &all[i]; r.Name == oci.RuntimeGVisor && lacking != nil {
			r.Available = false
			r.Reason, r.Fix = sandbox.Why(lacking)
		}
	}
	return all, closeStore()
}

// Runtimes says which runtimes can be used on this machine.
func Runtimes(ctx context.Context, o Options) ([]oci.RuntimeStatus, error) {
	var all []oci.RuntimeStatus
	for _, e := range o.Backends.Entries() {
		if e.Runtimes == nil {
			continue
		}
		found, err := e.Runtimes(ctx, o.orProcess())
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// RuntimesOf says which runtimes of one entry can be used on this machine.
func RuntimesOf(ctx context.Context, environment string, o Options) ([]oci.RuntimeStatus, error) {
	e, err := o.Backends.find(environment)
	if err != nil || e.Runtimes == nil {
		return nil, err
	}
	return e.Runtimes(ctx, o.orProcess())
}

// OwnNetwork returns nil when public sandboxes without a container engine have a
// network of their own on this machine, and otherwise why not, and what to do.
func OwnNetwork() (fix string, err error) { return oci.OwnNetwork() }

// ociPrograms are programs that sandboxes need besides this one; those that are empty are
// this one.
type ociPrograms struct{ guest, gvisor string }

func findPrograms(ctx context.Context, name string, o Options, self, cache string) (p ociPrograms, err error) {
	// The host's own files have the libraries that this program may need.
	if p.guest = guestOf(ctx, o, self, cache); p.guest == "" && name != sandbox.BackendHost {
		if p.guest, err = staticGuest(self); err != nil {
			return p, err
		}
	}
	if o.Runtime == "" || o.Runtime == oci.RuntimeGVisor {
		p.gvisor, err = gvisorOf(ctx, o, self, cache)
	}
	return p, err
}

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
	var programs ociPrograms
	if !o.Cleaning {
		if programs, err = findPrograms(ctx, name, o, self, dirs.Cache); err != nil {
			return opts, nil, err
		}
	}
	opts = oci.Options{
		OwnRoot:    name == sandbox.BackendHost,
		StateDir:   filepath.Join(dirs.State, "sandboxes"),
		Executable: self,
		Guest:      programs.guest,
		GVisor:     programs.gvisor,
		Build:      version.Current().ID(),
		Runtime:    o.Runtime,
		PIDs:       o.PIDs,
		Hardened:   o.Hardened,
		ShareHost:  o.HostNetwork,
		Now:        clock.Or(o.Now),
		Egress:     o.Egress,
		Mask:       slices.Concat(o.Mask, []string{dirs.State, dirs.Cache}),
		Show:       o.Show,
	}
	if opts.OwnRoot {
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
