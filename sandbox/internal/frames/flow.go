package frames

import (
	"fmt"
	"sync"
)

// Cost stands for the memory that a data frame takes besides its payload.
const Cost = 64

// Credit is the sending end of flow control: how much may still be sent.
type Credit struct {
	window int

	mu     sync.Mutex
	left   int
	wake   chan struct{} // closed and replaced when left grows
	closed bool
}

// NewCredit has a full window.
func NewCredit(window int) *Credit {
	return &Credit{window: window, left: window, wake: make(chan struct{})}
}

// Take waits until at least one byte may be sent, and takes the credit for a
// frame of up to want bytes. It returns how many bytes the frame may carry, or
// 0 when one of the channels is closed or the credit is.
func (c *Credit) Take(want int, stop, stop2 <-chan struct{}) int {
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return 0
		}
		if c.left > Cost {
			n := min(want, c.left-Cost)
			c.left -= n + Cost
			c.mu.Unlock()
			return n
		}
		wake := c.wake
		c.mu.Unlock()
		select {
		case <-wake:
		case <-stop:
			return 0
		case <-stop2:
			return 0
		}
	}
}

// GiveBack returns what Take took and no frame carried.
func (c *Credit) GiveBack(n int) { _ = c.Add(n) }

// Add books what the receiver granted. More than was ever taken is a breach.
func (c *Credit) Add(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n < 0 || n > c.window-c.left {
		return fmt.Errorf("%w: credit of %d bytes, %d are under way", ErrProtocol, n, c.window-c.left)
	}
	c.left += n
	close(c.wake)
	c.wake = make(chan struct{})
	return nil
}

// Close lets Take return 0 for good.
func (c *Credit) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.wake)
		c.wake = make(chan struct{})
	}
}

// Inbox is the receiving end: frames that have come and are not consumed yet,
// never more than a window of them.
type Inbox struct {
	window int

	mu     sync.Mutex
	frames []Frame
	size   int           // what the sender may not send until it is granted again
	used   int           // what of size is consumed
	ended  bool          // no frame will follow
	wake   chan struct{} // has room for one signal
}

// NewInbox is empty.
func NewInbox(window int) *Inbox { return &Inbox{window: window, wake: make(chan struct{}, 1)} }

// Push appends a data frame. More than a window, or data after the end, is a
// breach.
func (b *Inbox) Push(f Frame) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size += len(f.Payload) + Cost
	switch {
	case b.size > b.window:
		return fmt.Errorf("%w: more data than was granted", ErrProtocol)
	case b.ended:
		return fmt.Errorf("%w: data after the end", ErrProtocol)
	}
	b.frames = append(b.frames, f)
	b.signal()
	return nil
}

// End appends a last frame that needs no credit. A second end is ignored.
func (b *Inbox) End(f Frame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.ended = true
		b.frames = append(b.frames, f)
		b.signal()
	}
}

// Drop forgets the frames that were not taken out.
func (b *Inbox) Drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frames = nil
}

func (b *Inbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Pop waits for the next frame; it reports false when one of the channels is
// closed and nothing is left. One goroutine pops.
func (b *Inbox) Pop(stop, stop2 <-chan struct{}) (Frame, bool) {
	for {
		if f, ok := b.tryPop(); ok {
			return f, true
		}
		select {
		case <-b.wake:
		case <-stop:
			return b.tryPop()
		case <-stop2:
			return b.tryPop()
		}
	}
}

func (b *Inbox) tryPop() (Frame, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.frames) == 0 {
		return Frame{}, false
	}
	f := b.frames[0]
	b.frames[0] = Frame{}
	b.frames = b.frames[1:]
	return f, true
}

// Consumed notes that a popped data frame with n bytes of payload is done
// with, and returns how much to grant the sender now: little grants are saved
// up, and after the end none is needed.
func (b *Inbox) Consumed(n int) (grant int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n + Cost
	if b.used < b.window/4 || b.ended {
		return 0
	}
	grant = b.used
	b.size -= grant
	b.used = 0
	return grant
}

// Held is how much the sender has to wait for before it has a full window
// again.
func (b *Inbox) Held() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size
}
