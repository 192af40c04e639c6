package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
)

var _ sandbox.Preparer = (*Backend)(nil)

// prepared is a sandbox without mounts that runs and waits for its Spec.
type prepared struct {
	backend *Backend
	kind    sandbox.Spec
	base    *base

	mu   sync.Mutex
	life *Sandbox // nil when it was taken
}

// Prepare starts a sandbox for a Spec that is not known yet. What is known of it
// late is its record, the variables, user and working directory of its commands,
// and its mounts.
func (b *Backend) Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Prepared, error) {
	if b.proxied(spec.Network) || spec.Image.ForceBuild {
		return nil, fmt.Errorf("preparing a sandbox with a network or an image of its own: %w", sandbox.ErrUnsupported)
	}
	if b.opts.Hardened || spec.Hardened {
		return nil, fmt.Errorf("preparing a hardened sandbox, of which the working directory has to be known: %w", sandbox.ErrUnsupported)
	}
	kind := sandbox.Spec{Name: "ready", Image: spec.Image, Resources: spec.Resources, Network: spec.Network}
	if err := b.accept(kind); err != nil {
		return nil, fmt.Errorf("preparing a sandbox: %w", err)
	}
	from, err := b.base(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("preparing a sandbox: %w", err)
	}
	life, err := b.startWith(ctx, kind, from, (*Sandbox).later)
	if err != nil {
		return nil, fmt.Errorf("preparing a sandbox: %w", err)
	}
	return &prepared{backend: b, kind: kind, base: from, life: life}, nil
}

// lateMounts reports whether mounts can be made in a sandbox that runs: not by
// ordinary users, who cannot enter its namespaces, and not with gVisor, whose
// kernel knows only what it was started with.
func (b *Backend) lateMounts() bool { return b.root && b.runtime.LateMounts() }

// Take makes it the sandbox of a Spec.
func (p *prepared) Take(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life == nil {
		return nil, fmt.Errorf("taking sandbox %q: it was taken before", spec.Name)
	}
	err := p.backend.accept(spec)
	if err == nil && spec.Hardened {
		err = fmt.Errorf("hardening a sandbox that runs: %w", sandbox.ErrUnsupported)
	}
	if err == nil && len(spec.Mounts) > 0 && !p.backend.lateMounts() {
		err = fmt.Errorf("mounts in a sandbox that runs: %w", sandbox.ErrUnsupported)
	}
	if err == nil {
		err = p.adopt(ctx, spec)
	}
	if err != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyLimit)
		defer cancel()
		err = errors.Join(err, p.life.Destroy(end))
		return nil, fmt.Errorf("taking sandbox %q: %w", spec.Name, err)
	}
	life := p.life
	p.life = nil
	return p.backend.renewableOf(life, spec, p.base), nil
}

// adopt tells a running sandbox whose it is.
func (p *prepared) adopt(ctx context.Context, spec sandbox.Spec) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s := p.life
	owner := spec.Labels.Owner
	if owner == (procid.ID{}) {
		owner = p.backend.owner
	}
	if err := writeRecord(s.dir, record{
		ID: s.id, Name: spec.Name, Backend: p.backend.Name(), Runtime: p.backend.runtime.Name(),
		Job: spec.Labels.Job, Trial: spec.Labels.Trial, Owner: owner,
	}); err != nil {
		return err
	}
	if len(spec.Mounts) > 0 {
		if err := s.mountLate(spec.Mounts); err != nil {
			return err
		}
		s.noteLogs(spec.Mounts)
	}
	opts := p.base.guestOptions(p.backend.opts.Build, spec)
	s.env = opts.Env
	s.client.SetDefaults(opts.Env, opts.User, opts.Workdir)
	// The entrypoint sees the mounts, as it does in a sandbox that was created.
	return s.begin(ctx, p.base)
}

// Memory is the proportional set size of its processes.
func (p *prepared) Memory() int64 {
	p.mu.Lock()
	life := p.life
	p.mu.Unlock()
	if life == nil {
		return 0
	}
	found, err := processesOf(life.id)
	if err != nil {
		return 0
	}
	var sum int64
	for _, pid := range found {
		text := hostfile.Small(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
		for line := range strings.Lines(text) {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != "Pss:" {
				continue
			}
			if kB, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				sum += kB << 10
			}
		}
	}
	return sum
}

// Destroy removes it, unless it was taken.
func (p *prepared) Destroy(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life == nil {
		return nil
	}
	return p.life.Destroy(ctx)
}

// writeRecord replaces the record of a sandbox.
func writeRecord(dir string, r record) error {
	tmp := filepath.Join(dir, fileOwner+".new")
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("writing %q: %w", tmp, err)
	}
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, fileOwner))
}
