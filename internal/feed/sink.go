package feed

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// class is what is given up first where a queue is full: live output is also in the log of
// the finished trial, and that is in the job's directory.
type class int

const (
	classDelta class = iota
	classLog
	classProgress
)

// Bounds of what waits for one receiver.
const (
	// maxItems are the events of some hundred trials.
	maxItems = 1024
	// maxBytes has room for several of the largest items, whose three messages may
	// become six times as long by escapes.
	maxBytes = 8 << 20
)

// item is what is delivered at once.
type item struct {
	class class
	lines [][]byte
}

func (it item) size() int {
	n := 0
	for _, line := range it.lines {
		n += len(line)
	}
	return n
}

// delivery brings lines to where they are read. It is used by one goroutine.
type delivery interface {
	deliver(ctx context.Context, lines [][]byte) error
	// whole reports whether all that was begun is complete.
	whole() bool
}

// sink is a queue in front of a delivery, emptied in order by a goroutine of its own.
type sink struct {
	name     string
	delivery delivery
	redact   func(string) string
	notices  *notices
	abandon  context.CancelFunc
	done     chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex // guards what follows
	changed *sync.Cond
	queue   []item
	bytes   int
	lost    [classProgress + 1]int // events that were given up
	busy    *item                  // is being delivered
	closed  bool
	failed  bool
}

func newSink(name string, d delivery, f *Feed) *sink {
	ctx, cancel := context.WithCancel(context.Background())
	s := &sink{
		name: name, delivery: d, redact: f.redact, notices: f.notices, abandon: cancel, done: make(chan struct{}),
	}
	s.changed = sync.NewCond(&s.mu)
	go s.run(ctx)
	return s
}

// push adds an item and gives up others where there are too many.
func (s *sink) push(c class, lines ...[]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := item{c, lines}
	if s.closed {
		return
	}
	s.queue = append(s.queue, it)
	s.bytes += it.size()
	for len(s.queue) > maxItems || s.bytes > maxBytes {
		s.giveUp()
	}
	s.changed.Signal()
}

// giveUp drops the oldest item of the class that matters least.
func (s *sink) giveUp() {
	worst := slices.MinFunc(s.queue, func(a, b item) int { return int(a.class - b.class) }).class
	i := slices.IndexFunc(s.queue, func(it item) bool { return it.class == worst })
	s.lose(s.queue[i])
	s.bytes -= s.queue[i].size()
	s.queue = slices.Delete(s.queue, i, i+1)
}

func (s *sink) lose(it item) { s.lost[it.class] += len(it.lines) }

func (s *sink) run(ctx context.Context) {
	defer close(s.done)
	defer s.abandon()
	for {
		it, ok := s.take()
		if !ok {
			return
		}
		err := s.delivery.deliver(ctx, it.lines)
		s.delivered(err, ctx.Err() != nil)
	}
}

// take waits for an item; ok is false when there will be none.
func (s *sink) take() (it item, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 {
		if s.closed {
			return item{}, false
		}
		s.changed.Wait()
	}
	it = s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	s.bytes -= it.size()
	s.busy = &it
	return it, true
}

// delivered warns of the first failure, unless the delivery was called off.
func (s *sink) delivered(err error, calledOff bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = nil
	if err == nil || calledOff || s.failed {
		return
	}
	s.failed = true
	s.notices.add(fmt.Sprintf("%s: %s; later failures are not reported", s.name, printable(s.redact(err.Error()))))
}

func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.changed.Signal()
}

// wait waits until the queue is empty, or gives up what is in it when ctx ends. It reports
// whether all that was begun is complete.
func (s *sink) wait(ctx context.Context) (whole bool) {
	select {
	case <-s.done:
		whole = s.delivery.whole()
	case <-ctx.Done():
		whole = s.giveUpAll()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != [len(s.lost)]int{} {
		s.notices.add(fmt.Sprintf("%s: not sent, since the receiver was too slow: %d progress events, %d log events, "+
			"%d parts of live output", s.name, s.lost[classProgress], s.lost[classLog], s.lost[classDelta]))
		s.lost = [len(s.lost)]int{}
	}
	return whole
}

// giveUpAll leaves the goroutine with what it is at, which may never end.
func (s *sink) giveUpAll() (whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.queue {
		s.lose(it)
	}
	s.queue, s.bytes = nil, 0
	s.abandon()
	if s.busy == nil {
		return s.delivery.whole()
	}
	s.lose(*s.busy)
	_, out := s.delivery.(*lineWriter)
	return !out
}
