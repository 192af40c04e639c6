package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/hardening"
	"github.com/proctor-run/proctor/sandbox/internal/ownkernel"
	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
	"github.com/proctor-run/proctor/sandbox/oci/internal/cgroup"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
	"github.com/proctor-run/proctor/sandbox/oci/internal/rootplan"
	"github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"
)

// Backend makes sandboxes with an OCI runtime.
type Backend struct {
	opts    Options
	runtime runtimes.Runtime
	owner   procid.ID
	root    bool          // of the host, not of a user namespace only
	groups  *cgroup.Place // of sandboxes
	// noTUN says why sandboxes cannot have a network of their own; nil when
	// they can.
	noTUN error
	// single: the programs that map ranges of ids have failed.
	single atomic.Bool
	// services are the IDs of images whose entrypoint is a program of its own.
	services sync.Map
}

var (
	_ sandbox.Backend   = (*Backend)(nil)
	_ sandbox.Collector = (*Backend)(nil)
)

// New makes a backend. It creates nothing yet; errors that wrap
// sandbox.ErrUnavailable say that the runtime is not there.
func New(opts Options) (*Backend, error) {
	if !filepath.IsAbs(opts.StateDir) || !filepath.IsAbs(opts.Executable) {
		return nil, fmt.Errorf("state directory %q, executable %q: want absolute paths", opts.StateDir, opts.Executable)
	}
	if err := checkShow(opts); err != nil {
		return nil, err
	}
	opts.Guest, opts.GVisor = cmp.Or(opts.Guest, opts.Executable), cmp.Or(opts.GVisor, opts.Executable)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	owner, err := procid.Self()
	if err != nil {
		return nil, err
	}
	r, err := runtimes.Find(opts.Runtime)
	if err != nil {
		return nil, err
	}
	root := runtimes.HostRoot()
	return &Backend{
		opts: opts, runtime: r, owner: owner, root: root,
		groups: cgroup.Find(root), noTUN: network.Try(tunPath),
	}, nil
}

// Name is sandbox.BackendHost or sandbox.BackendSandbox.
func (b *Backend) Name() string {
	if b.opts.OwnRoot {
		return sandbox.BackendHost
	}
	return sandbox.BackendSandbox
}

// Runtime is the name of the runtime in use.
func (b *Backend) Runtime() string { return b.runtime.Name() }

// Capabilities are those of this machine: limits are enforced where control groups can
// be made, by root or by an ordinary user who was given one, that of storage by root, and
// those of storage and processes with gVisor by anybody.
func (b *Backend) Capabilities() sandbox.Capabilities {
	return sandbox.Capabilities{
		Mounted: true, OwnRoot: b.opts.OwnRoot, Build: !b.opts.OwnRoot, NoNetwork: true, Allowlist: true, SwitchNetwork: true,
		GuardedMounts: true, Hardened: true,
		StorageLimit: b.root || b.runtime.OwnKernel(),
		CPULimit:     b.groups.Limits(cgroup.Processors), MemoryLimit: b.groups.Limits(cgroup.Memory),
		PIDsLimit: b.runtime.OwnKernel() || b.groups.Limits(cgroup.Processes),
	}
}

// accept refuses a Spec beyond the capabilities. Limits that are not enforced
// are no reason to: callers learn that from Capabilities.
func (b *Backend) accept(spec sandbox.Spec) error {
	switch spec.Network.Mode {
	case "", sandbox.NetworkPublic, sandbox.NetworkNone, sandbox.NetworkAllowlist:
	default:
		return fmt.Errorf("network mode %q: %w", spec.Network.Mode, sandbox.ErrUnsupported)
	}
	if spec.Resources.GPUs > 0 {
		return fmt.Errorf("%d GPUs: %w", spec.Resources.GPUs, sandbox.ErrUnsupported)
	}
	if spec.Hardened && b.networkKind(spec.Network) == network.Host {
		return fmt.Errorf("a hardened sandbox in this machine's network (network=host): %w", sandbox.ErrUnsupported)
	}
	return validMounts(spec.Mounts)
}

// complete says in a Spec what follows from its being hardened.
func (b *Backend) complete(spec sandbox.Spec) sandbox.Spec {
	return hardening.Complete(spec, b.opts.Hardened, b.opts.PIDs)
}

// Create makes and starts a sandbox.
func (b *Backend) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	spec = b.complete(spec)
	if err := b.accept(spec); err != nil {
		return nil, fmt.Errorf("creating sandbox %q: %w", spec.Name, err)
	}
	if warning := b.networkWarning(spec.Network); warning != "" && spec.Warn != nil {
		spec.Warn(warning)
	}
	base, err := b.base(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("creating sandbox %q: %w", spec.Name, err)
	}
	s, err := b.start(ctx, spec, base)
	if errors.Is(err, runtimes.ErrMapping) && b.single.CompareAndSwap(false, true) {
		b.opts.Log.Warn("sandboxes have one user", "cause", err)
		s, err = b.start(ctx, spec, base)
	}
	if err != nil {
		return nil, fmt.Errorf("creating sandbox %q: %w", spec.Name, err)
	}
	return b.renewableOf(s, spec, base), nil
}

// start makes a sandbox on a base, and runs the image's entrypoint in it. What it
// leaves when it fails has a record.
func (b *Backend) start(ctx context.Context, spec sandbox.Spec, base *base) (*Sandbox, error) {
	return b.startWith(ctx, spec, base, (*Sandbox).begin)
}

// startWith makes a sandbox and does what comes then.
func (b *Backend) startWith(ctx context.Context, spec sandbox.Spec, base *base,
	then func(*Sandbox, context.Context, *base) error,
) (_ *Sandbox, err error) {
	id := newID()
	owner := spec.Labels.Owner
	if owner == (procid.ID{}) {
		owner = b.owner
	}
	dir, err := newRecord(b.opts.StateDir, record{
		ID: id, Name: spec.Name, Backend: b.Name(), Runtime: b.runtime.Name(),
		Job: spec.Labels.Job, Trial: spec.Labels.Trial, Owner: owner,
	})
	if err != nil {
		return nil, err
	}
	s := &Sandbox{backend: b, id: id, dir: dir, hostname: cmp.Or(base.hostname, id), stack: base.stack, busy: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyLimit)
			defer cancel()
			err = errors.Join(err, s.Destroy(cleanup))
		}
	}()
	start, err := b.prepare(s, spec, base)
	if err != nil {
		return nil, err
	}
	if err := s.run(ctx, start, base, spec); err != nil {
		if ctx.Err() == nil {
			err = b.explain(err)
		}
		return nil, err
	}
	if err := then(s, ctx, base); err != nil {
		return nil, err
	}
	return s, nil
}

// prepare writes everything that the runtime needs into the sandbox's directory.
func (b *Backend) prepare(s *Sandbox, spec sandbox.Spec, base *base) (runtimes.Start, error) {
	mounts := spec.Mounts
	if base.mounts != nil {
		own := filepath.Join(s.dir, dirMounts)
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, err
		}
		more, err := base.mounts(own)
		if err != nil {
			return nil, err
		}
		mounts = append(slices.Clone(mounts), more...)
	}
	bundle := &runtimes.Bundle{
		ID: s.id, Dir: s.dir, Hostname: s.hostname, Guest: b.opts.Guest, Executable: b.opts.Executable, GVisor: b.opts.GVisor, Build: b.opts.Build,
		Mounts: mounts, Hardened: spec.Hardened,
		Network: b.networkKind(spec.Network), TUN: tunPath, Layer: base.layer, Groups: b.groups, Resources: b.resources(spec),
	}
	if !b.root {
		// An ordinary user's layers have one user.
		bundle.Users = runtimes.CallerUsers(!b.single.Load() && !base.layer)
	}
	plan, err := b.plan(s.hostname, bundle.Network, base)
	if err != nil {
		return nil, err
	}
	if spec.Hardened {
		plan.Writable = hardening.Writable(cmp.Or(spec.Workdir, base.workdir), bundle.Targets())
	}
	if err := plan.Write(s.dir); err != nil {
		return nil, fmt.Errorf("laying out the root file system: %w", err)
	}
	bundle.Root = plan.Root(s.dir, base.userXattr, base.layer)
	if err := b.putOn(&bundle.Root, base.stack, s.dir); err != nil {
		return nil, fmt.Errorf("laying out the root file system: %w", err)
	}
	for _, p := range bundle.Root.Parts {
		s.parts = append(s.parts, p.Path)
		// A kernel of its own bounds its root, and not what a hardened sandbox can write to.
		if !b.runtime.OwnKernel() || spec.Hardened {
			s.written = append(s.written, p.Upper)
		}
	}
	s.storage = bundle.Resources.StorageMB << 20
	s.noteLogs(spec.Mounts)
	return b.runtime.Prepare(bundle)
}

// resources are those of a Spec, with the bound on processes that holds when
// it has none.
func (b *Backend) resources(spec sandbox.Spec) sandbox.Resources {
	r := spec.Resources
	r.StorageMB = min(r.StorageMB, 1<<40) // more than bytes can count
	r.PIDs = cmp.Or(r.PIDs, b.opts.PIDs, sandbox.DefaultPIDs)
	return r
}

// plan lays out the root file system.
func (b *Backend) plan(hostname string, kind network.Kind, base *base) (*rootplan.Plan, error) {
	fresh := func(below rootfs.Attributes) rootfs.Tree {
		t := network.Identity(hostname, kind, below)
		if _, ok := below("/tmp"); ok && b.runtime.OwnKernel() {
			t.File(ownkernel.Placeholder, 0o600, nil, below)
		}
		return t
	}
	if !b.opts.OwnRoot {
		return rootplan.Image(base.layers, fresh), nil
	}
	return rootplan.Host(hidden(b.opts), b.opts.Show, !b.root, fresh)
}

// hidden are the caller's own paths that backend host never shows.
func hidden(opts Options) []string { return append(slices.Clone(opts.Mask), opts.StateDir) }

// checkShow refuses what the caller wants shown and must not have, before there is a
// sandbox.
func checkShow(opts Options) error {
	if !opts.OwnRoot || len(opts.Show) == 0 {
		return nil
	}
	if err := rootplan.CheckShow(hidden(opts), opts.Show); err != nil {
		return fmt.Errorf("%w: %w", ErrShow, err)
	}
	return nil
}

// validMounts refuses what a runtime would mount somewhere else than asked.
func validMounts(mounts []sandbox.Mount) error {
	for _, m := range mounts {
		if len(m.Source) == 0 || m.Source[0] != '/' {
			return fmt.Errorf("mount source %q: want an absolute path", m.Source)
		}
		if len(m.Target) < 2 || m.Target[0] != '/' {
			return fmt.Errorf("mount target %q: want an absolute path other than /", m.Target)
		}
	}
	return nil
}
