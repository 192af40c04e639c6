package guest

import (
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

const (
	// pingEvery is how often a supervisor is asked whether there is somebody, while
	// something is ended and while processes are asked for.
	pingEvery = 4 * time.Second
	// pingsMissed in a row show that there is nobody. A supervisor answers within
	// milliseconds whatever else it does. A time in which this program did not run
	// either counts as one of them, however long it was.
	pingsMissed = 4
)

// stopped is why a connection ends on which nothing is heard.
var stopped = &sandbox.LostError{Reason: "its supervisor does not answer: something in the sandbox has stopped it"}

// listen asks the supervisor whether there is somebody until a call is over, from when
// what it has to do was sent; a supervisor that does not read that is silent, too. A
// runtime that does not keep signals from a first process lets commands stop the
// supervisor, which then neither ends anything nor says that it does not. Without any
// answer the connection is abandoned.
func (c *Client) listen(k *call, sent <-chan struct{}) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	heard, missed, sending := c.heard.Load(), -1, make(chan struct{}, 1) // before the first tick nothing is asked
	for {
		select {
		case <-k.over:
			return
		case <-c.done:
			return
		case <-tick.C:
		}
		if now := c.heard.Load(); now != heard {
			heard, missed = now, -1
		}
		if missed++; missed == pingsMissed {
			c.Abandon(stopped)
			return
		}
		select {
		case <-sent:
		default:
			continue
		}
		select {
		case sending <- struct{}{}:
			c.running.Go(func() { // stuck when nobody reads; ends with the connection
				_ = c.w.Send(reqPing, k.id, nil)
				<-sending
			})
		default:
		}
	}
}
