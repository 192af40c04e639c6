// Package pool keeps sandboxes ready, so that a Create takes one instead of
// making it. What it gives is indistinguishable from what its backend creates:
// nothing has happened in it, and name, labels, mounts, variables, user and
// working directory are those of the Spec that it is given to.
//
//	p := pool.New(backend, pool.Options{Size: 4})
//	defer p.Close(ctx)
//	sb, err := p.Create(ctx, spec) // of p.Backend's own where none is ready
//
// Sandboxes of one kind have the same image, resources and network. The first
// Create of a kind makes a sandbox of its own; from the second one on the pool
// fills itself in the background, because the kind is wanted again.
package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

// Options bound a pool.
type Options struct {
	// Size is how many sandboxes of each kind are kept ready; 0 means 1.
	Size int
	// Idle is how long a ready sandbox may wait for its use before it is removed;
	// 0 means DefaultIdle.
	Idle time.Duration
	// Memory bounds what all that is ready takes together, in bytes; 0 means no
	// bound. What goes beyond it is removed, the oldest first. It is looked at
	// whenever a sandbox has become ready.
	Memory int64
	// Warn is called with sandboxes that could not be prepared or removed; it may be nil.
	Warn func(err error)
}

// defaultIdle is long for a trial to come, and short for memory to be held.
const defaultIdle = 5 * time.Minute

// destroyLimit bounds the removal of a sandbox that nobody took.
const destroyLimit = time.Minute

// Pool is a backend that keeps sandboxes of another one ready. Its methods may
// be called concurrently.
type Pool struct {
	sandbox.Backend
	preparer sandbox.Preparer // nil where the backend prepares nothing
	opts     Options
	ctx      context.Context // of what is done in the background
	stop     context.CancelFunc
	destroy  func(*item)

	mu     sync.Mutex
	closed bool
	kinds  map[kind]*shelf
	work   sync.WaitGroup
}

// shelf holds what is ready of one kind.
type shelf struct {
	spec        sandbox.Spec // labels removed
	ready       []*item      // oldest first
	making      int
	seen        int
	unsupported bool // the backend prepares none of this kind
}

// item is a ready sandbox. Whoever takes it off its shelf owns it.
type item struct {
	prepared sandbox.Prepared
	idle     *time.Timer
}

// kind is what sandboxes that can stand for each other have in common.
type kind struct {
	ref, context, name string
	resources          sandbox.Resources
	network            sandbox.NetworkMode
}

// New makes a pool, which is empty. Close has to be called.
func New(backend sandbox.Backend, opts Options) *Pool {
	if opts.Size <= 0 {
		opts.Size = 1
	}
	if opts.Idle <= 0 {
		opts.Idle = defaultIdle
	}
	if opts.Warn == nil {
		opts.Warn = func(error) {}
	}
	p := &Pool{Backend: backend, opts: opts, kinds: map[kind]*shelf{}}
	p.preparer, _ = backend.(sandbox.Preparer)
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.destroy = func(it *item) { p.remove(p.ctx, it) }
	return p
}

// kindOf returns the kind of a Spec. Some are of no kind: what is built anew each
// time, projects of several containers, networks that report to a trial, and what
// is hardened, of which all has to be known at first.
func kindOf(spec sandbox.Spec) (kind, bool) {
	k := kind{ref: spec.Image.Ref, resources: spec.Resources, network: spec.Network.Mode}
	if k.network == "" {
		k.network = sandbox.NetworkPublic
	}
	if b := spec.Image.Build; b != nil {
		k.context, k.name = b.ContextDir, b.Name
	}
	own := spec.Hardened || spec.Image.ForceBuild || spec.Compose != nil || spec.Network.Switchable || k.network == sandbox.NetworkAllowlist
	return k, !own
}

// Create takes a sandbox that is ready, or lets the backend create one.
func (p *Pool) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	k, pooled := kindOf(spec)
	if p.preparer == nil || !pooled {
		return p.create(ctx, spec)
	}
	for {
		it := p.take(k, spec)
		if it == nil {
			return p.create(ctx, spec)
		}
		sb, err := it.prepared.Take(ctx, spec)
		switch {
		case err == nil:
			return sb, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("taking a sandbox from the pool: %w", context.Cause(ctx))
		case errors.Is(err, sandbox.ErrUnsupported):
			p.give(k)
			return p.create(ctx, spec)
		}
		p.opts.Warn(fmt.Errorf("a sandbox of the pool could not be used: %w", err)) // and the next is tried
	}
}

func (p *Pool) create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	return p.Backend.Create(ctx, spec) //nolint:wrapcheck // the pool adds nothing to what the backend says
}

// take returns the oldest ready sandbox of a kind, or nil, and sees to it that
// more are made.
func (p *Pool) take(k kind, spec sandbox.Spec) *item {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shelfLocked(k, spec)
	s.seen++
	var it *item
	if len(s.ready) > 0 {
		it, s.ready = s.ready[0], s.ready[1:]
		it.idle.Stop()
	}
	if s.seen > 1 || it != nil {
		p.refillLocked(s)
	}
	return it
}

// give notes that what is prepared of a kind does not serve who asks for it.
func (p *Pool) give(k kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.kinds[k]
	s.unsupported = true
	for _, it := range s.ready {
		it.idle.Stop()
		p.removeLocked(it)
	}
	s.ready = nil
}

func (p *Pool) shelfLocked(k kind, spec sandbox.Spec) *shelf {
	s := p.kinds[k]
	if s == nil {
		s = &shelf{spec: sandbox.Spec{Name: "pool", Image: spec.Image, Resources: spec.Resources, Network: sandbox.Network{Mode: spec.Network.Mode}}}
		p.kinds[k] = s
	}
	return s
}

// refillLocked begins to make what is missing of a kind.
func (p *Pool) refillLocked(s *shelf) {
	for !p.closed && !s.unsupported && len(s.ready)+s.making < p.opts.Size {
		s.making++
		p.work.Go(func() { _ = p.make(p.ctx, s) }) // Close waits for it; make warns
	}
}

// make prepares a sandbox and puts it on its shelf.
func (p *Pool) make(ctx context.Context, s *shelf) error {
	prepared, err := p.preparer.Prepare(ctx, s.spec)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.making--
	if err != nil {
		s.unsupported = s.unsupported || ctx.Err() == nil // it is not tried again and again
		if ctx.Err() == nil && !errors.Is(err, sandbox.ErrUnsupported) {
			p.opts.Warn(fmt.Errorf("preparing a sandbox: %w", err))
		}
		return fmt.Errorf("preparing a sandbox: %w", err)
	}
	it := &item{prepared: prepared}
	if p.closed || s.unsupported {
		p.removeLocked(it)
		return nil
	}
	it.idle = time.AfterFunc(p.opts.Idle, func() { p.expire(s, it) })
	s.ready = append(s.ready, it)
	p.shrinkLocked()
	return nil
}

// shrinkLocked removes what is beyond the bound of memory.
func (p *Pool) shrinkLocked() {
	if p.opts.Memory <= 0 {
		return
	}
	var used int64
	for _, s := range p.kinds {
		for _, it := range s.ready {
			used += it.prepared.Memory()
		}
	}
	for _, s := range p.kinds {
		for used > p.opts.Memory && len(s.ready) > 0 {
			it := s.ready[0]
			used -= it.prepared.Memory()
			s.ready = s.ready[1:]
			it.idle.Stop()
			p.removeLocked(it)
		}
	}
}

// expire removes a sandbox that nobody has taken. Of a kind that nobody wants any
// more no other is made.
func (p *Pool) expire(s *shelf, it *item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range s.ready {
		if other == it {
			s.ready = append(s.ready[:i:i], s.ready[i+1:]...)
			p.removeLocked(it)
			return
		}
	}
}

// removeLocked destroys a sandbox in the background, on the pool's behalf and
// not on that of who happens to call. Close waits for it.
func (p *Pool) removeLocked(it *item) { p.work.Go(func() { p.destroy(it) }) }

func (p *Pool) remove(ctx context.Context, it *item) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyLimit)
	defer cancel()
	if err := it.prepared.Destroy(ctx); err != nil {
		p.opts.Warn(fmt.Errorf("removing a sandbox that was kept ready: %w", err))
	}
}

// Fill makes the pool ready for sandboxes like spec, and returns when as many as
// its Size are there.
func (p *Pool) Fill(ctx context.Context, spec sandbox.Spec) error {
	k, pooled := kindOf(spec)
	if p.preparer == nil || !pooled {
		return fmt.Errorf("preparing a sandbox: %w", sandbox.ErrUnsupported)
	}
	for {
		p.mu.Lock()
		s := p.shelfLocked(k, spec)
		switch {
		case p.closed:
			p.mu.Unlock()
			return errClosed
		case len(s.ready)+s.making >= p.opts.Size:
			p.mu.Unlock()
			return nil
		}
		s.making++
		p.mu.Unlock()
		if err := p.make(ctx, s); err != nil {
			return err
		}
	}
}

// Ready is how many sandboxes wait to be taken.
func (p *Pool) Ready() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, s := range p.kinds {
		n += len(s.ready)
	}
	return n
}

var errClosed = errors.New("the pool is closed")

// Close removes everything that is ready, waits until that is done, and lets later
// Creates go to the backend. Sandboxes that were taken stay. It may be called
// repeatedly.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.stop()
	for _, s := range p.kinds {
		for _, it := range s.ready {
			it.idle.Stop()
			p.removeLocked(it)
		}
		s.ready = nil
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		p.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("emptying the pool: %w", context.Cause(ctx))
	}
}
