package cubetest

import (
	"context"
	"sync"
	"time"

	"github.com/proctor-run/proctor/cube"
)

// rendezvousPatience is how long an episode waits for the others before a turn: those
// that cannot be under way at the same time must not wait for each other for ever.
const rendezvousPatience = 2 * time.Second

// rendezvous lets episodes take their turns together, so that what they share gets in
// their way. Without it short episodes run one after the other.
type rendezvous struct {
	mu      sync.Mutex // guards what follows
	live    int        // episodes that have not ended
	waiting int
	apart   bool          // they cannot all be under way at the same time
	open    chan struct{} // closed when those that wait may go on
}

func newRendezvous(episodes int) *rendezvous {
	return &rendezvous{live: episodes, open: make(chan struct{})}
}

// arrive waits for all live episodes to arrive. Once they did not in time, nobody waits
// any more.
func (r *rendezvous) arrive(ctx context.Context) {
	r.mu.Lock()
	if r.apart {
		r.mu.Unlock()
		return
	}
	r.waiting++
	r.release()
	open := r.open
	if r.waiting == 0 { // this one was the last
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	timer := time.NewTimer(rendezvousPatience)
	defer timer.Stop()
	select {
	case <-open:
		return
	case <-ctx.Done():
	case <-timer.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if open == r.open { // the others that wait go on, too
		r.apart = true
		close(r.open)
		r.open, r.waiting = make(chan struct{}), 0
	}
}

// leave ends an episode.
func (r *rendezvous) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live--
	r.release()
}

// release lets those that wait go on, once all wait.
func (r *rendezvous) release() {
	if r.waiting < r.live {
		return
	}
	close(r.open)
	r.open, r.waiting = make(chan struct{}), 0
}

// together returns debug agents that meet before each turn.
func (r *rendezvous) together(agents DebugAgent) DebugAgent {
	return func(task cube.TaskConfig) cube.Agent {
		own := agents(task)
		return cube.AgentFunc(func(ctx context.Context, obs *cube.Observation, actions []cube.ActionSchema) ([]cube.Action, error) {
			r.arrive(ctx)
			return own.Act(ctx, obs, actions)
		})
	}
}
