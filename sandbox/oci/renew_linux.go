package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox"
)

// renewable is the sandbox that callers have. It keeps its id, its mounts and
// its host name; what runs in it, a Sandbox with a root file system and a guest,
// is replaced by Reset and Snapshot. That works alike with every runtime, and
// nothing that commands did to the namespaces, the guest or the layers that they
// wrote to can outlast it.
type renewable struct {
	backend *Backend
	id      string
	spec    sandbox.Spec
	base    *base // what Reset goes back to

	busy chan struct{} // held by the Reset, Snapshot or Destroy that is at work
	// ends with Destroy, and with it what is done in the background or for others.
	ctx  context.Context
	stop context.CancelFunc

	mu    sync.Mutex
	life  *Sandbox // nil after a Reset or Snapshot that failed
	ended bool     // Destroy was called

	// Guarded by busy:

	spare    *spare
	old      []*Sandbox // lives that have ended and are not removed yet
	removing sync.WaitGroup
	held     []*layer // of snapshots
	removed  bool
}

var (
	_ sandbox.Sandbox         = (*renewable)(nil)
	_ sandbox.Resetter        = (*renewable)(nil)
	_ sandbox.Snapshotter     = (*renewable)(nil)
	_ sandbox.Restarter       = (*renewable)(nil)
	_ sandbox.NetworkSwitcher = (*renewable)(nil)
	_ sandbox.Owner           = (*renewable)(nil)
)

// renewableOf makes the sandbox that callers have. What it begins anew has the
// name of its first life.
func (b *Backend) renewableOf(s *Sandbox, spec sandbox.Spec, from *base) *renewable {
	again := *from
	again.hostname = s.hostname
	r := &renewable{backend: b, id: s.hostname, spec: spec, base: &again, life: s, busy: make(chan struct{}, 1)}
	r.ctx, r.stop = context.WithCancel(context.Background())
	for _, l := range again.stack {
		r.held = append(r.held, l.hold())
	}
	return r
}

// errBroken is the error of calls after a Reset or Snapshot that failed.
var errBroken = errors.New("the sandbox could not be begun anew, and can only be destroyed")

// running returns what runs now.
func (r *renewable) running() (*Sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
		return nil, sandbox.ErrDestroyed
	case r.life == nil:
		return nil, errBroken
	}
	return r.life, nil
}

// ID is the container id of the first life.
func (r *renewable) ID() string { return r.id }

// Exec runs a command.
func (r *renewable) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	s, err := r.running()
	if err != nil {
		return sandbox.ExitStatus{}, err
	}
	return s.Exec(ctx, cmd)
}

// Mark notes which processes exist now.
func (r *renewable) Mark(ctx context.Context) (sandbox.Mark, error) {
	s, err := r.running()
	if err != nil {
		return "", err
	}
	return s.Mark(ctx)
}

// KillTree ends everything born since the mark.
func (r *renewable) KillTree(ctx context.Context, since sandbox.Mark, grace time.Duration) error {
	s, err := r.running()
	if err != nil {
		return err
	}
	return s.KillTree(ctx, since, grace)
}

// EndAll ends every process but the supervisor, see sandbox.Restarter.
func (r *renewable) EndAll(ctx context.Context, grace time.Duration) error {
	return r.staying(ctx, "ending everything", func(ctx context.Context, s *Sandbox) error { return s.endAll(ctx, grace) })
}

// StartServices starts the image's entrypoint again.
func (r *renewable) StartServices(ctx context.Context) error {
	return r.staying(ctx, "starting services", func(ctx context.Context, s *Sandbox) error { return s.enter(ctx, r.base) })
}

// staying does something with what runs now, which stays meanwhile.
func (r *renewable) staying(ctx context.Context, what string, do func(context.Context, *Sandbox) error) error {
	release, err := r.hold(ctx)
	if err != nil {
		return fmt.Errorf("%s in sandbox %q: %w", what, r.id, err)
	}
	defer release()
	s, err := r.running()
	if err != nil {
		return err
	}
	ctx, cancel := r.until(ctx)
	defer cancel()
	if err := do(ctx, s); err != nil {
		return fmt.Errorf("%s in sandbox %q: %w", what, r.id, err)
	}
	return nil
}

// Upload unpacks a tar stream below dir.
func (r *renewable) Upload(ctx context.Context, dir string, tar io.Reader) error {
	s, err := r.running()
	if err != nil {
		return err
	}
	return s.Upload(ctx, dir, tar)
}

// Download writes path as a tar stream.
func (r *renewable) Download(ctx context.Context, path string, tar io.Writer) error {
	s, err := r.running()
	if err != nil {
		return err
	}
	return s.Download(ctx, path, tar)
}

// SetNetwork changes what the sandbox can reach, see Sandbox.SetNetwork. A Reset
// takes it back.
func (r *renewable) SetNetwork(ctx context.Context, mode sandbox.NetworkMode, hosts []string) error {
	s, err := r.running()
	if err != nil {
		return err
	}
	return s.SetNetwork(ctx, mode, hosts)
}

// Listen lets programs in the sandbox reach this program, see egress.Listener. A
// Reset and a Snapshot end it.
func (r *renewable) Listen(ctx context.Context) (net.Listener, error) {
	s, err := r.running()
	if err != nil {
		return nil, err
	}
	return s.Listen(ctx)
}

// Own changes owners, see sandbox.Owner.
func (r *renewable) Own(ctx context.Context, dir string) error {
	s, err := r.running()
	if err != nil {
		return err
	}
	return s.Own(ctx, dir)
}

// hold waits until no other Reset, Snapshot or Destroy is at work.
func (r *renewable) hold(ctx context.Context) (release func(), err error) {
	select {
	case r.busy <- struct{}{}:
		return func() { <-r.busy }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// until returns a context that ends with ctx, or when the sandbox is destroyed.
func (r *renewable) until(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.ctx, func() { cancel(sandbox.ErrDestroyed) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// Reset ends everything in the sandbox and begins it anew.
func (r *renewable) Reset(ctx context.Context) error {
	release, err := r.hold(ctx)
	if err != nil {
		return fmt.Errorf("resetting sandbox %q: %w", r.id, err)
	}
	defer release()
	ctx, cancel := r.until(ctx)
	defer cancel()
	if err := r.reset(ctx); err != nil {
		return fmt.Errorf("resetting sandbox %q: %w", r.id, err)
	}
	return nil
}

func (r *renewable) reset(ctx context.Context) error {
	old, err := r.running()
	if err != nil {
		return err
	}
	if r.backend.proxied(r.spec.Network) {
		// Two lives would write to one log of connections.
		r.old = append(r.old, old)
		if err := r.replace(nil, old.Destroy(ctx)); err != nil {
			return err
		}
		next, err := r.backend.start(ctx, r.spec, r.base)
		return r.replace(next, err)
	}
	halted := make(chan error, 1)
	go func() { halted <- old.halt(ctx) }()
	next, err := r.next(ctx)
	err = errors.Join(err, <-halted)
	r.old = append(r.old, old)
	if err := r.replace(next, err); err != nil {
		return err
	}
	r.tidy() //nolint:contextcheck // what is removed outlives who asked
	// Resets tend to repeat, so the next one is prepared.
	r.spare = r.backend.keepSpare(r.ctx, r.spec, r.base) //nolint:contextcheck // it waits for the next Reset
	return nil
}

// next is a life that nothing has happened in: the spare one if there is one.
func (r *renewable) next(ctx context.Context) (*Sandbox, error) {
	if r.spare != nil {
		if s := r.spare.take(ctx); s != nil {
			return s, nil
		}
	}
	return r.backend.start(ctx, r.spec, r.base)
}

// replace sets what runs. With an error nothing does, and what was to run is
// removed by Destroy.
func (r *renewable) replace(next *Sandbox, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if next != nil {
			r.old = append(r.old, next)
		}
		next = nil
	}
	r.life = next
	return err
}

// tidy removes lives that have ended, in the background. What fails is tried
// again by Destroy.
func (r *renewable) tidy() {
	for _, s := range r.old {
		r.removing.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), destroyLimit)
			defer cancel()
			if err := s.Destroy(ctx); err != nil {
				r.backend.opts.Log.Warn("a part of a sandbox is left until it is destroyed", "sandbox", r.id, "cause", err)
			}
		})
	}
	// Destroy is idempotent, so that those that are removed may stay listed; the
	// list is kept short all the same.
	if len(r.old) > oldLives {
		r.removing.Wait()
		left := r.old[:0]
		for _, s := range r.old {
			if !s.isGone() {
				left = append(left, s)
			}
		}
		clear(r.old[len(left):])
		r.old = left
	}
}

// oldLives bounds how many ended lives are being removed at a time.
const oldLives = 8

func (s *Sandbox) isGone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// halt kills everything in a sandbox and returns when that is proven. What the
// runtime still has to clean up is left to Destroy.
func (s *Sandbox) halt(ctx context.Context) error {
	s.shutRelays()
	if s.first == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.end(ctx)
	}
	_ = unix.PidfdSendSignal(int(s.first.Fd()), unix.SIGKILL, nil, 0) // an error means that it is gone
	err := s.awaitFirst(ctx)
	_ = s.client.Close()
	return err
}

// Destroy ends everything and removes what was made. When it fails, a later call
// continues.
func (r *renewable) Destroy(ctx context.Context) error {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.stop()
	release, err := r.hold(ctx)
	if err != nil {
		return fmt.Errorf("destroying sandbox %q: %w", r.id, err)
	}
	defer release()
	if r.removed {
		return nil
	}
	if err := r.destroy(ctx); err != nil {
		return fmt.Errorf("destroying sandbox %q: %w", r.id, err)
	}
	r.removed = true
	return nil
}

func (r *renewable) destroy(ctx context.Context) error {
	var errs []error
	if r.spare != nil {
		errs = append(errs, r.spare.wait(ctx))
	}
	r.mu.Lock()
	life := r.life
	r.mu.Unlock()
	if life != nil {
		errs = append(errs, life.Destroy(ctx))
	}
	for _, s := range r.old {
		errs = append(errs, s.Destroy(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for len(r.held) > 0 {
		if err := r.held[0].release(ctx); err != nil {
			return err
		}
		r.held = r.held[1:]
	}
	return nil
}
