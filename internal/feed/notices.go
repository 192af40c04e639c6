package feed

import (
	"context"
	"sync"
)

// maxNotices is what two sinks say at most: of a first failure, and of what was lost.
const maxNotices = 4

// notices hands warnings on from a goroutine of its own, since whoever reads them may be
// as slow as the receivers they are about.
type notices struct {
	texts chan string
	stop  func() // ends the goroutine when all are handed on
	ended <-chan struct{}
	done  chan struct{}
}

func newNotices(warn func(string)) *notices {
	ended := make(chan struct{})
	n := &notices{
		texts: make(chan string, maxNotices), done: make(chan struct{}),
		ended: ended, stop: sync.OnceFunc(func() { close(ended) }),
	}
	if warn == nil {
		warn = func(string) {}
	}
	go n.run(warn)
	return n
}

// add never waits: there is room for all.
func (n *notices) add(text string) { n.texts <- text }

func (n *notices) run(warn func(string)) {
	defer close(n.done)
	for {
		select {
		case text := <-n.texts:
			warn(text)
			continue
		case <-n.ended:
		}
		select {
		case text := <-n.texts:
			warn(text)
		default:
			return
		}
	}
}

// close waits until all warnings have been handed on, or ctx ends.
func (n *notices) close(ctx context.Context) {
	n.stop()
	select {
	case <-n.done:
	case <-ctx.Done():
	}
}
