package admit

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func enter(t *testing.T, g *Gate, need Amount) (leave func()) {
	t.Helper()
	leave, err := g.Enter(t.Context(), need, func(why string) { t.Errorf("waits: %s", why) })
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

// TestInOrder: what does not fit waits and says what is short of, and a smaller one that
// comes later does not overtake it.
func TestInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Amount{CPUs: 4, MemoryMiB: 8192})
		first := enter(t, g, Amount{CPUs: 2, MemoryMiB: 2048})
		second := enter(t, g, Amount{CPUs: 1, MemoryMiB: 2048})
		var order, reasons []string
		var mu sync.Mutex
		var all sync.WaitGroup
		wait := func(name string, need Amount) {
			all.Go(func() {
				leave, err := g.Enter(t.Context(), need, func(why string) {
					mu.Lock()
					defer mu.Unlock()
					reasons = append(reasons, name+": "+why)
				})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				leave()
			})
			synctest.Wait()
		}
		wait("large", Amount{CPUs: 1, MemoryMiB: 8192})
		wait("small", Amount{CPUs: 1, MemoryMiB: 1})
		if len(order) != 0 {
			t.Errorf("admitted %v", order)
		}
		first()
		synctest.Wait()
		if len(order) != 0 {
			t.Errorf("admitted %v beside one that is left", order)
		}
		second()
		all.Wait()
		const short = "4096 of 8192 MiB of memory are free, and it needs 8192"
		if got := strings.Join(order, " "); got != "large small" {
			t.Errorf("order %s", got)
		}
		if got := strings.Join(reasons, "\n"); got != "large: "+short+"\nsmall: "+short {
			t.Errorf("reasons:\n%s", got)
		}
	})
}

// TestTooLarge: what needs more than there is runs alone.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	g := New(Amount{CPUs: 2, MemoryMiB: 1024})
	leave := enter(t, g, Amount{CPUs: 64, MemoryMiB: 1})
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	_, err := g.Enter(ctx, Amount{CPUs: 0.5}, func(why string) {
		if why != "0 of 2 processors are free, and it needs 0.5" {
			t.Errorf("got %q", why)
		}
		cancel(gone)
	})
	if !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	leave()
	enter(t, g, Amount{CPUs: 2, MemoryMiB: 1024})()
	if _, err := g.Enter(ctx, Amount{}, nil); !errors.Is(err, gone) {
		t.Errorf("after the end: %v", err)
	}
}

// TestGivenUp: those behind one that does not wait any more are admitted.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Amount{CPUs: 2})
		leave := enter(t, g, Amount{CPUs: 1})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := g.Enter(ctx, Amount{CPUs: 2}, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			leave, err := g.Enter(t.Context(), Amount{CPUs: 1}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			leave()
		})
		synctest.Wait()
		cancel()
		all.Wait()
		leave()
	})
}

// TestNeverMore: whatever comes, goes and gives up, no more is used than there is, and
// everything is admitted in the end.
func TestNeverMore(t *testing.T) {
	t.Parallel()
	have := Amount{CPUs: 3, MemoryMiB: 1000}
	g := New(have)
	var mu sync.Mutex
	var used Amount
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				need := Amount{CPUs: float64(rand.IntN(40)) / 10, MemoryMiB: rand.Int64N(1200)}
				givesUp := rand.IntN(4) == 0
				leave, err := g.Enter(ctx, need, func(string) {
					if givesUp {
						cancel()
					}
				})
				if err == nil {
					mu.Lock()
					used = used.plus(bounded(need, have))
					if used.CPUs > have.CPUs+1e-9 || used.MemoryMiB > have.MemoryMiB {
						t.Errorf("%+v are used", used)
					}
					mu.Unlock()
					mu.Lock()
					used = used.minus(bounded(need, have))
					mu.Unlock()
					leave()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if len(g.queue) != 0 || g.running != 0 || g.used != (Amount{}) {
		t.Errorf("left: %+v", g)
	}
}
