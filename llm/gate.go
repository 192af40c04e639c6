package llm

import (
	"context"
	"slices"
	"sync"
	"time"
)

// gate lets the calls of one model through, in the order in which they were asked for.
// How many may be under way at once has no bound until the provider rejects one. Then it is
// half of what was under way, and grows by one for each round of calls that succeeds.
type gate struct {
	now      func() time.Time
	wait     func(ctx context.Context, d time.Duration) error
	interval time.Duration // between the beginnings of calls; 0 for none

	mu      sync.Mutex
	tickets ticket
	queue   []waiting // by ticket; the first one's channel is closed
	under   int       // calls under way
	limit   float64   // of them; at least 1
	cut     time.Time // when limit was lowered last
	paused  time.Time // no call begins before
	next    time.Time // the next call of an interval
	// changed tells the first of the queue that a call has ended.
	changed chan struct{}
}

// ticket is a place in the queue, which a call keeps when it is made again.
type ticket uint64

type waiting struct {
	ticket ticket
	first  chan struct{}
}

// ticket takes the place at the end of the queue.
func (g *gate) ticket() ticket {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tickets++
	return g.tickets
}

// enter waits for a call's turn, and for the time that it may begin at, and counts it as
// under way.
func (g *gate) enter(ctx context.Context, t ticket) (began time.Time, err error) {
	w := waiting{t, make(chan struct{})}
	g.line(w)
	defer g.unline(t)
	select {
	case <-w.first:
	case <-ctx.Done():
		return began, context.Cause(ctx)
	}
	for {
		began, pause, free := g.begin()
		switch {
		case pause > 0:
			if err := g.wait(ctx, pause); err != nil {
				return began, err
			}
		case free:
			return began, nil
		default:
			select {
			case <-g.changed:
			case <-ctx.Done():
				return began, context.Cause(ctx)
			}
		}
	}
}

// attempt makes one attempt at a call in its turn.
func (g *gate) attempt(ctx context.Context, t ticket, rejections int, once func(ctx context.Context) error) error {
	began, err := g.enter(ctx, t)
	if err != nil {
		return err
	}
	err = once(ctx)
	if failed, ok := err.(*Error); ok && failed.Kind == RateLimited { //nolint:errorlint // what a provider returns, not what is inside of it
		g.rejected(began, max(failed.RetryAfter, min(longestWait, time.Second<<rejections)))
	} else {
		g.leave(err == nil)
	}
	return err
}

// line puts a call into the queue. One that was the first and has to wait for an earlier
// ticket that came back stays first: it is about to begin.
func (g *gate) line(w waiting) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := len(g.queue)
	for at > 1 && g.queue[at-1].ticket > w.ticket {
		at--
	}
	g.queue = slices.Insert(g.queue, at, w)
	if at == 0 {
		close(w.first)
	}
}

// unline takes a call out of the queue, and lets the next one be first.
func (g *gate) unline(t ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.IndexFunc(g.queue, func(w waiting) bool { return w.ticket == t })
	g.queue = slices.Delete(g.queue, at, at+1)
	if at == 0 && len(g.queue) > 0 {
		close(g.queue[0].first)
	}
}

// begin counts a call as under way if it may begin now. Otherwise it says for how long it
// may not, or, with free false, that another has to end first.
func (g *gate) begin() (began time.Time, pause time.Duration, free bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	begin := g.paused
	if g.interval > 0 && g.next.After(begin) {
		begin = g.next
	}
	switch {
	case begin.After(now):
		return now, begin.Sub(now), false
	case float64(g.under)+1 > g.limit:
		return now, 0, false
	}
	g.under++
	g.next = now.Add(g.interval)
	return now, 0, true
}

// leave notes the end of a call that was not rejected.
func (g *gate) leave(succeeded bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if succeeded {
		g.limit += 1 / g.limit
	}
	g.ended()
}

// rejected notes that a call was one too many, and that none may begin for a while. Of
// calls that were under way together the first rejection lowers the limit.
func (g *gate) rejected(began time.Time, pause time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if !began.Before(g.cut) || g.cut.IsZero() {
		g.limit = max(1, float64(g.under)/2)
		g.cut = now
	}
	if until := now.Add(pause); until.After(g.paused) {
		g.paused = until
	}
	g.ended()
}

// ended wakes whoever waits for a call to end.
func (g *gate) ended() {
	g.under--
	select {
	case g.changed <- struct{}{}:
	default:
	}
}
