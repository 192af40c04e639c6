// Package fake is a sandbox backend for tests of what schedules sandboxes. It
// runs no processes: what a command does is a [Handler] in Go, chosen by
// [Rule]. Files are real, in a directory of their own per sandbox, so that
// uploads, downloads and mounts behave as they do elsewhere.
//
//	b := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{
//		fake.On("test.sh", fake.Write("/logs/verifier/reward.txt", "1\n")),
//		fake.On("solve.sh", fake.Hang()),
//	}})
//	defer fake.Verify(t, b)
//
// It can be slow, fail at a call of choice, hang and produce garbage, see
// [Config.Before] and the handlers. It records every call, and complains about
// calls that no correct caller makes, see [Backend.Violations].
//
// Time is taken from the time package, so that it stands still inside
// testing/synctest.
package fake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
)

// Config says how a backend behaves. The zero value, with Dir set, creates
// sandboxes at once and lets every command exit 0 without output.
type Config struct {
	// Dir is an existing directory on the host for the sandboxes' files.
	Dir string
	// Name of the backend; empty means "fake".
	Name string
	// Capabilities; nil claims everything but Compose, GPUs, TPUs and Windows.
	Capabilities *sandbox.Capabilities
	// Files are the image: path in the sandbox to content. A path that ends
	// in a slash is an empty directory.
	Files map[string]string

	// Rules choose what a command does; the first that matches is taken, and
	// without one it exits 0.
	Rules []Rule

	// Before is called at the begin of each call, before it takes effect. It
	// can wait, for a channel or for ctx, and its error becomes the call's:
	// the call then had no effect. See FailAt, HangAt and their like.
	Before func(ctx context.Context, call Call) error

	// Prepares makes the backend a sandbox.Preparer; otherwise Prepare gives
	// ErrUnsupported.
	Prepares bool

	// Unsnapshotted is why sandboxes cannot be snapshot, an ErrUnsupported; nil lets them.
	Unsnapshotted error

	// Created is called at the end of Create with the new sandbox, for
	// instance to write files. Commands cannot be run yet.
	Created func(ctx context.Context, sb *Sandbox) error
}

// Backend is a programmable sandbox.Backend.
type Backend struct {
	cfg  Config
	caps sandbox.Capabilities

	mu         sync.Mutex
	calls      []*Call
	counts     map[Op]int
	violations []string
	live       map[string]*Sandbox // by id
	created    int
	snapshots  int // not released
	prepared   int // neither taken nor destroyed
	mostLive   int
}

var (
	_ sandbox.Backend   = (*Backend)(nil)
	_ sandbox.Collector = (*Backend)(nil)
)

// New makes a backend.
func New(cfg Config) *Backend {
	caps := sandbox.Capabilities{
		Mounted: true, Build: true, NoNetwork: true, Allowlist: true, SwitchNetwork: true, CPULimit: true, MemoryLimit: true, Keep: true,
	}
	if cfg.Capabilities != nil {
		caps = *cfg.Capabilities
	}
	if cfg.Name == "" {
		cfg.Name = "fake"
	}
	return &Backend{cfg: cfg, caps: caps, counts: map[Op]int{}, live: map[string]*Sandbox{}}
}

// Name is Config.Name.
func (b *Backend) Name() string { return b.cfg.Name }

// Capabilities are those of Config.
func (b *Backend) Capabilities() sandbox.Capabilities { return b.caps }

// Check succeeds, unless Config.Before says otherwise.
func (b *Backend) Check(ctx context.Context) error {
	return b.call(ctx, &Call{Op: opCheck}, func() error { return nil })
}

// Create makes a sandbox with Config.Files in it.
func (b *Backend) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	var sb *Sandbox
	err := b.call(ctx, &Call{Op: OpCreate, Sandbox: spec.Name, Spec: spec}, func() (err error) {
		sb, err = b.create(ctx, spec, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("creating sandbox %q: %w", spec.Name, err)
	}
	return sb, nil
}

// create makes a sandbox with the files of an archive; nil means the image's.
func (b *Backend) create(ctx context.Context, spec sandbox.Spec, origin []byte) (*Sandbox, error) {
	if err := b.supports(spec); err != nil {
		return nil, err
	}
	for _, m := range spec.Mounts {
		if !path.IsAbs(m.Target) || !m.Volume && !filepath.IsAbs(m.Source) {
			b.violate("create %q: mount %q on %q is not absolute", spec.Name, m.Source, m.Target)
		}
	}
	sb := newSandbox(b, spec)
	sb.origin = origin
	if err := b.enter(sb); err != nil {
		return nil, err
	}
	err := sb.fill()
	if err == nil && origin == nil && b.cfg.Created != nil {
		err = b.cfg.Created(ctx, sb)
	}
	if err != nil {
		return nil, errors.Join(err, sb.remove())
	}
	sb.setState(running)
	return sb, nil
}

// supports refuses what goes beyond the Capabilities.
func (b *Backend) supports(spec sandbox.Spec) error {
	for what, beyond := range map[string]bool{
		"network mode " + string(spec.Network.Mode): (spec.Network.Mode == sandbox.NetworkNone && !b.caps.NoNetwork) ||
			(spec.Network.Mode == sandbox.NetworkAllowlist && !b.caps.Allowlist),
		"changing the network": spec.Network.Switchable && !b.caps.SwitchNetwork,
		"a CPU limit":          spec.Resources.CPUs > 0 && !b.caps.CPULimit,
		"a memory limit":       spec.Resources.MemoryMB > 0 && !b.caps.MemoryLimit,
		"hardening":            spec.Hardened && !b.caps.Hardened,
		"GPUs":                 spec.Resources.GPUs > 0 && !b.caps.GPUs,
		"a build":              spec.Image.Ref == "" && spec.Image.Build != nil && !b.caps.Build,
	} {
		if beyond {
			return fmt.Errorf("%s: %w", what, sandbox.ErrUnsupported)
		}
	}
	return nil
}

// enter books a sandbox and makes its directory.
func (b *Backend) enter(sb *Sandbox) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.created++
	sb.number = b.created
	sb.id = fmt.Sprintf("%s-%d", b.cfg.Name, sb.number)
	if sb.spec.Name == "" {
		b.violateLocked("create: Spec.Name is empty")
	}
	for _, other := range b.live {
		if other.spec.Name == sb.spec.Name {
			b.violateLocked("create %q: the name is in use by a sandbox that is not destroyed", sb.spec.Name)
		}
	}
	sb.dir = filepath.Join(b.cfg.Dir, sb.id)
	if err := os.Mkdir(sb.dir, 0o755); err != nil {
		return err
	}
	b.live[sb.id] = sb
	b.mostLive = max(b.mostLive, len(b.live))
	return nil
}

func (b *Backend) leave(sb *Sandbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.live, sb.id)
}

// Live is how many sandboxes are not destroyed now.
func (b *Backend) Live() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.live)
}

// MostLive is how many sandboxes were there at the same time.
func (b *Backend) MostLive() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mostLive
}

// Sandboxes are those that are not destroyed, in the order of their creation.
func (b *Backend) Sandboxes() []*Sandbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*Sandbox, 0, len(b.live))
	for _, sb := range b.live {
		all = append(all, sb)
	}
	slices.SortFunc(all, func(x, y *Sandbox) int { return x.number - y.number })
	return all
}

// Collect destroys the sandboxes whose owner keep does not claim.
func (b *Backend) Collect(ctx context.Context, keep func(procid.ID) bool) ([]string, error) {
	var removed []string
	err := b.call(ctx, &Call{Op: opCollect}, func() error {
		for _, sb := range b.Sandboxes() {
			if keep(sb.spec.Labels.Owner) {
				continue
			}
			if err := sb.remove(); err != nil {
				return err
			}
			removed = append(removed, fmt.Sprintf("sandbox %s (%s)", sb.id, sb.spec.Name))
		}
		return nil
	})
	return removed, err
}
