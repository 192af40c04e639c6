package fake

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/proctor-run/proctor/sandbox"
)

var (
	_ sandbox.Snapshotter = (*Sandbox)(nil)
	_ sandbox.Preparer    = (*Backend)(nil)
)

// snapshot holds the files of a sandbox as an archive.
type snapshot struct {
	b     *Backend
	name  string
	files []byte

	mu       sync.Mutex
	released bool
}

// CanSnapshot is Config.Unsnapshotted.
func (s *Sandbox) CanSnapshot() error { return s.b.cfg.Unsnapshotted }

// Snapshot ends all processes and keeps the files.
func (s *Sandbox) Snapshot(ctx context.Context, name string) (sandbox.Snapshot, error) {
	if err := s.CanSnapshot(); err != nil {
		return nil, err
	}
	shot := &snapshot{b: s.b, name: name}
	err := s.do(ctx, &Call{Op: OpSnapshot}, func() error {
		s.shut(anyDoor)
		s.endAll(errKilled, func(*proc) bool { return true })
		root := files{places: s.files.places[len(s.files.places)-1:]} // without what is mounted
		var archive bytes.Buffer
		if err := root.pack("/", &archive); err != nil {
			return err
		}
		shot.files = archive.Bytes()
		s.b.mu.Lock()
		defer s.b.mu.Unlock()
		s.b.snapshots++
		return nil
	})
	if err != nil {
		return nil, err
	}
	return shot, nil
}

func (s *snapshot) Name() string { return s.name }

// Size is that of the archive.
func (s *snapshot) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.files))
}

// Fork creates a sandbox with the snapshot's files.
func (s *snapshot) Fork(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	var sb *Sandbox
	err := s.b.call(ctx, &Call{Op: OpFork, Sandbox: spec.Name, Spec: spec}, func() (err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.released {
			s.b.violate("fork of snapshot %q after its Release", s.name)
			return fmt.Errorf("snapshot %q is released", s.name)
		}
		sb, err = s.b.create(ctx, spec, s.files)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("forking sandbox %q: %w", spec.Name, err)
	}
	return sb, nil
}

// Release gives the files up.
func (s *snapshot) Release(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released {
		return nil
	}
	s.released, s.files = true, nil
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.snapshots--
	return nil
}

// prepared is a sandbox that is created when it is taken.
type prepared struct {
	b    *Backend
	once sync.Once
}

// preparedMemory is what a prepared sandbox says that it takes, in bytes.
const preparedMemory = 1 << 20

// Prepare is refused unless Config.Prepares is set.
func (b *Backend) Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Prepared, error) {
	if !b.cfg.Prepares {
		return nil, fmt.Errorf("preparing a sandbox: %w", sandbox.ErrUnsupported)
	}
	err := b.call(ctx, &Call{Op: opPrepare, Spec: spec}, func() error { return b.supports(spec) })
	if err != nil {
		return nil, fmt.Errorf("preparing a sandbox: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prepared++
	return &prepared{b: b}, nil
}

// Take creates the sandbox.
func (p *prepared) Take(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	p.leave()
	var sb *Sandbox
	err := p.b.call(ctx, &Call{Op: opTake, Sandbox: spec.Name, Spec: spec}, func() (err error) {
		sb, err = p.b.create(ctx, spec, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("taking sandbox %q: %w", spec.Name, err)
	}
	return sb, nil
}

func (p *prepared) Memory() int64 { return preparedMemory }

func (p *prepared) Destroy(context.Context) error {
	p.leave()
	return nil
}

// leave notes that the sandbox is not kept ready any more.
func (p *prepared) leave() {
	p.once.Do(func() {
		p.b.mu.Lock()
		defer p.b.mu.Unlock()
		p.b.prepared--
	})
}

// Prepared is how many sandboxes are kept ready now.
func (b *Backend) Prepared() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.prepared
}
