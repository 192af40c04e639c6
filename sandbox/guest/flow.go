package guest

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// credit is the sending end of flow control: how much may still be sent.
type credit struct {
	mu     sync.Mutex
	left   int
	wake   chan struct{} // closed and replaced when left grows from nothing
	closed bool
}

func newCredit() *credit { return &credit{left: window, wake: make(chan struct{})} }

// take waits until at least one byte may be sent, and takes the credit for a
// frame of up to want bytes. It returns how many bytes the frame may carry, or
// 0 when one of the channels is closed or the credit is.
func (c *credit) take(want int, stop, stop2 <-chan struct{}) int {
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return 0
		}
		if c.left > frameCost {
			n := min(want, c.left-frameCost)
			c.left -= n + frameCost
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

// giveBack returns what take took and the frame did not carry.
func (c *credit) giveBack(n int) { _ = c.add(n) }

// add books what the receiver granted. More than was ever taken is a breach.
func (c *credit) add(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n < 0 || n > window-c.left {
		return fmt.Errorf("%w: credit of %d bytes, %d are under way", errProtocol, n, window-c.left)
	}
	c.left += n
	close(c.wake)
	c.wake = make(chan struct{})
	return nil
}

// close lets take return 0 for good.
func (c *credit) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.wake)
		c.wake = make(chan struct{})
	}
}

func creditOf(payload []byte) (int, error) {
	if len(payload) != 4 {
		return 0, fmt.Errorf("%w: credit of %d bytes length", errProtocol, len(payload))
	}
	return int(binary.BigEndian.Uint32(payload)), nil
}

// inbox is the receiving end: frames that have come and are not consumed yet,
// never more than a window of them.
type inbox struct {
	mu     sync.Mutex
	frames []frame
	size   int           // what the sender may not send until it is granted again
	ended  bool          // no frame will follow
	wake   chan struct{} // has room for one signal
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// push appends a data frame. More than a window is a breach.
func (b *inbox) push(f frame) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size += len(f.payload) + frameCost
	if b.size > window {
		return fmt.Errorf("%w: more data than was granted", errProtocol)
	}
	if !b.ended {
		b.frames = append(b.frames, f)
		b.signal()
	}
	return nil
}

// end appends a last frame that needs no credit. What follows is ignored.
func (b *inbox) end(f frame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.ended = true
		b.frames = append(b.frames, f)
		b.signal()
	}
}

func (b *inbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// pop waits for the next frame; it reports false when one of the channels is
// closed and nothing is left. One goroutine pops.
func (b *inbox) pop(stop, stop2 <-chan struct{}) (frame, bool) {
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

func (b *inbox) tryPop() (frame, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.frames) == 0 {
		return frame{}, false
	}
	f := b.frames[0]
	b.frames[0] = frame{}
	b.frames = b.frames[1:]
	return f, true
}

// granted notes that a popped data frame of n bytes is done with, and returns
// how much to grant the sender now: little grants are saved up.
func (b *inbox) granted(pending *int, n int) int {
	*pending += n + frameCost
	if *pending < window/4 {
		return 0
	}
	n = *pending
	*pending = 0
	b.mu.Lock()
	b.size -= n
	b.mu.Unlock()
	return n
}
