// Package admit lets work begin when the machine has room for it.
package admit

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Amount is what work needs, or a machine has.
type Amount struct {
	CPUs      float64
	MemoryMiB int64
	DiskMiB   int64
}

func (a Amount) plus(b Amount) Amount {
	return Amount{CPUs: a.CPUs + b.CPUs, MemoryMiB: a.MemoryMiB + b.MemoryMiB, DiskMiB: a.DiskMiB + b.DiskMiB}
}

func (a Amount) minus(b Amount) Amount {
	return Amount{CPUs: a.CPUs - b.CPUs, MemoryMiB: a.MemoryMiB - b.MemoryMiB, DiskMiB: a.DiskMiB - b.DiskMiB}
}

// holds reports whether all of b is in a.
func (a Amount) holds(b Amount) bool {
	return b.CPUs <= a.CPUs && b.MemoryMiB <= a.MemoryMiB && b.DiskMiB <= a.DiskMiB
}

// Gate admits work in the order in which it comes, so that nothing waits for ever behind
// what is smaller. What needs more than there is is admitted when it is alone.
type Gate struct {
	have Amount

	mu      sync.Mutex
	used    Amount
	running int
	queue   []*waiter
}

type waiter struct {
	need Amount
	turn chan struct{} // closed when it is admitted
}

// New makes a gate of a machine.
func New(have Amount) *Gate { return &Gate{have: have} }

// Enter waits until there is room for what is needed, and keeps it until leave is called,
// once. waiting is called before a wait, with what is short; it may be nil. The error is
// the cause for which ctx ended.
func (g *Gate) Enter(ctx context.Context, need Amount, waiting func(why string)) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w := &waiter{need: bounded(need, g.have), turn: make(chan struct{})}
	if why := g.enqueue(w); why != "" && waiting != nil {
		waiting(why)
	}
	select {
	case <-w.turn:
	case <-ctx.Done():
		g.giveUp(w)
		return nil, context.Cause(ctx)
	}
	return func() { g.leave(w) }, nil
}

// bounded is need within what there is at all: nothing else fits beside what needs more.
func bounded(need, have Amount) Amount {
	return Amount{
		CPUs:      min(max(need.CPUs, 0), have.CPUs),
		MemoryMiB: min(max(need.MemoryMiB, 0), have.MemoryMiB),
		DiskMiB:   min(max(need.DiskMiB, 0), have.DiskMiB),
	}
}

// enqueue admits at once or puts at the end; why says what is short.
func (g *Gate) enqueue(w *waiter) (why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, w)
	g.admit()
	if !slices.Contains(g.queue, w) {
		return ""
	}
	return g.lacking(g.queue[0].need)
}

// lacking says what the first that waits is short of.
func (g *Gate) lacking(need Amount) string {
	free := g.have.minus(g.used)
	if need.CPUs > free.CPUs {
		return fmt.Sprintf("%g of %g processors are free, and it needs %g", free.CPUs, g.have.CPUs, need.CPUs)
	}
	if need.MemoryMiB > free.MemoryMiB {
		return fmt.Sprintf("%d of %d MiB of memory are free, and it needs %d", free.MemoryMiB, g.have.MemoryMiB, need.MemoryMiB)
	}
	return fmt.Sprintf("%d of %d MiB of disk are free, and it needs %d", free.DiskMiB, g.have.DiskMiB, need.DiskMiB)
}

// admit lets in those that wait as long as the first of them fits; mu is held.
func (g *Gate) admit() {
	for len(g.queue) > 0 {
		w := g.queue[0]
		free := g.have.minus(g.used)
		if g.running > 0 && !free.holds(w.need) {
			return
		}
		g.queue = g.queue[1:]
		g.used, g.running = g.used.plus(w.need), g.running+1
		close(w.turn)
	}
}

func (g *Gate) leave(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free(w)
}

// free gives the room of one that was admitted to those that wait; mu is held.
func (g *Gate) free(w *waiter) {
	g.used, g.running = g.used.minus(w.need), g.running-1
	if g.running == 0 {
		g.used = Amount{} // sums of fractions need not cancel out
	}
	g.admit()
}

// giveUp takes one that waits out, or gives back the room of one that was admitted
// meanwhile.
func (g *Gate) giveUp(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, w)
	if i < 0 {
		g.free(w)
		return
	}
	g.queue = slices.Delete(g.queue, i, i+1)
	g.admit() // it may have been the first, and too large
}
