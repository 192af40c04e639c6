package llmtest

import (
	"context"
	"sync"
	"time"
)

// Clock is one on which waiting takes no time, for [llm.Client]. The zero value begins at the
// zero time. It may be used by several goroutines.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now is the time, which only Wait changes.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Wait lets the time pass, unless ctx has ended.
func (c *Clock) Wait(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return ctx.Err()
}
