package job

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/sandbox"
)

// tracker knows the live sandboxes of a backend, so that they can be destroyed
// at once.
type tracker struct {
	sandbox.Backend
	// note is called when a sandbox is made and when it is gone.
	note func(kind journal.Kind, backend, id string, labels sandbox.Labels)

	mu     sync.Mutex // guards what follows
	live   map[*trackedSandbox]bool
	killed bool
}

func newTracker(b sandbox.Backend, note func(journal.Kind, string, string, sandbox.Labels)) *tracker {
	return &tracker{Backend: b, note: note, live: map[*trackedSandbox]bool{}}
}

var errKilled = errors.New("the run was stopped at once")

// Runtime is that of the backend.
func (t *tracker) Runtime() string { return sandbox.RuntimeOf(t.Backend) }

// Create refuses new sandboxes once the run is being killed.
func (t *tracker) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	sb, err := t.Backend.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return t.track(ctx, sb, spec)
}

// track makes a new sandbox one that is known.
func (t *tracker) track(ctx context.Context, sb sandbox.Sandbox, spec sandbox.Spec) (sandbox.Sandbox, error) {
	tracked := &trackedSandbox{Sandbox: sb, t: t, labels: spec.Labels}
	tracked.note(journal.SandboxCreated)
	t.mu.Lock()
	t.live[tracked] = true
	killed := t.killed
	t.mu.Unlock()
	if killed {
		return nil, errors.Join(errKilled, tracked.Destroy(context.WithoutCancel(ctx)))
	}
	if stopper, ok := sandbox.As[sandbox.Stopper](sb); ok {
		return stoppable{tracked, stopper}, nil
	}
	return tracked, nil
}

// killOn destroys everything when the channel is closed; the returned function
// ends the watch.
func (t *tracker) killOn(kill <-chan struct{}) (stop func()) {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-kill:
			t.killAll()
		case <-done:
		}
	})
	return func() {
		close(done)
		watch.Wait()
	}
}

func (t *tracker) killAll() {
	t.mu.Lock()
	t.killed = true
	var all []*trackedSandbox
	for sb := range t.live {
		all = append(all, sb)
	}
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), killAllLimit)
	defer cancel()
	var wg sync.WaitGroup
	for _, sb := range all {
		// What cannot be destroyed here is reported by the trial's own Destroy.
		wg.Go(func() { _ = sb.Destroy(ctx) })
	}
	wg.Wait()
}

// killAllLimit bounds the destruction of all sandboxes at once.
const killAllLimit = 30 * time.Second

type trackedSandbox struct {
	sandbox.Sandbox
	t      *tracker
	labels sandbox.Labels
}

func (s *trackedSandbox) note(kind journal.Kind) { s.t.note(kind, s.t.Name(), s.ID(), s.labels) }

// Destroy destroys the sandbox and forgets it.
func (s *trackedSandbox) Destroy(ctx context.Context) error {
	err := s.Sandbox.Destroy(ctx)
	if err == nil && s.forget() {
		s.note(journal.SandboxRemoved)
	}
	return err
}

// forget reports whether it was still known.
func (s *trackedSandbox) forget() bool {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	known := s.t.live[s]
	delete(s.t.live, s)
	return known
}

// CanSnapshot is that of the sandbox. One that only wraps a [sandbox.Snapshotter] has none:
// what begins with the snapshot would not be wrapped.
func (s *trackedSandbox) CanSnapshot() error {
	keeper, ok := s.Sandbox.(sandbox.Snapshotter)
	if !ok {
		return sandbox.ErrUnsupported
	}
	return keeper.CanSnapshot()
}

// Snapshot takes one whose sandboxes are known, too.
func (s *trackedSandbox) Snapshot(ctx context.Context, name string) (sandbox.Snapshot, error) {
	keeper, ok := s.Sandbox.(sandbox.Snapshotter)
	if !ok {
		return nil, sandbox.ErrUnsupported
	}
	shot, err := keeper.Snapshot(ctx, name)
	if err != nil {
		return nil, err
	}
	return trackedSnapshot{shot, s.t}, nil
}

// trackedSnapshot makes sandboxes that are known.
type trackedSnapshot struct {
	sandbox.Snapshot
	t *tracker
}

// Fork is Create from the snapshot.
func (s trackedSnapshot) Fork(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	sb, err := s.Snapshot.Fork(ctx, spec)
	if err != nil {
		return nil, err
	}
	return s.t.track(ctx, sb, spec)
}

// Unwrap is the way to the abilities of the sandbox, see [sandbox.As].
func (s *trackedSandbox) Unwrap() sandbox.Sandbox { return s.Sandbox }

// stoppable is a tracked sandbox that can be stopped: its end is noted.
type stoppable struct {
	*trackedSandbox
	sandbox.Stopper
}

// Stop stops the sandbox and leaves it.
func (s stoppable) Stop(ctx context.Context) (hint string, err error) {
	hint, err = s.Stopper.Stop(ctx)
	if err == nil && s.forget() {
		s.note(journal.SandboxKept)
	}
	return hint, err
}
