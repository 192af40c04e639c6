package trial

import (
	"context"
	"fmt"
)

// Lane bounds how many trials do one thing at a time, below the number of those that run.
// Others wait for their turn in the order in which they come; what they wait counts
// towards no time limit of a phase. A nil one bounds nothing.
type Lane struct{ turns chan struct{} }

// NewLane makes a lane for n trials at a time; it is nil where n is not above 0.
func NewLane(n int) *Lane {
	if n <= 0 {
		return nil
	}
	return &Lane{turns: make(chan struct{}, n)}
}

// enter waits for a turn, which lasts until leave is called, once. waiting is called before
// a wait, with how many have a turn. The error is the cause for which ctx ended.
func (l *Lane) enter(ctx context.Context, waiting func(n int)) (leave func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	leave = func() { <-l.turns }
	select {
	case l.turns <- struct{}{}:
		return leave, nil
	default:
	}
	waiting(cap(l.turns))
	select {
	case l.turns <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// turn waits for the trial's turn in a lane, where others do what one and many say.
func (a *attempt) turn(ctx context.Context, l *Lane, one, many string) (leave func(), err error) {
	return l.enter(ctx, func(n int) {
		text := fmt.Sprintf("waits for its turn: %d other trials %s", n, many)
		if n == 1 {
			text = "waits for its turn: another trial " + one
		}
		a.log.printf("%s", text)
		a.emit(EventProgress, text)
	})
}
