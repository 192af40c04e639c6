// Package gateway is a server through which programs reach a model without its key.
//
// Programs that speak the protocol of a provider, as the well-known command-line agents do,
// are given the address of a [Gateway] and a key of its own. It checks what they ask for,
// puts in the provider's key, passes on their calls and the answers as they are, streams
// while they come, and counts what was used:
//
//	g := &gateway.Gateway{Model: "anthropic/claude-sonnet-4-5", Key: gateway.NewKey(), Route: route, Meter: meter,
//		Protocols: llm.Protocols("anthropic/claude-sonnet-4-5", llm.Options{})}
//	g.Open()
//	go (&http.Server{Handler: g}).Serve(listener)
//	…
//	g.Close()
//
// It speaks the four protocols of package llm, as far as they are about one answer:
//
//	POST …/chat/completions
//	POST …/responses
//	POST …/messages and …/messages/count_tokens
//	POST …/models/M:generateContent, :streamGenerateContent and :countTokens
//	GET  …/models, which lists the one model
//
// Calls take turns with all other calls of the model, and are made again where that may
// help, as those of [llm.Client] are. Whatever cannot be counted is refused: other paths,
// other models, answers that come later and, where there is a budget, other prices. At most 64
// calls are under way at once, with at most 512 MiB of requests and answers.
//
// A caller who leaves pays for the answer: what comes of it within a few seconds is read and
// counted, and the rest is estimated.
package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/llm"
)

// Gateway serves one model to those who have its key. The fields are set before the first
// call. It refuses all calls until it is opened.
type Gateway struct {
	// Model is the name as it was configured, "provider/model". Callers name it by that or
	// by what comes after the slash; no other model is served.
	Model string
	// Protocols are those that callers may speak, see [llm.Protocols].
	Protocols []llm.API
	// Key is what callers must send as their key. It must not be empty.
	Key string
	// Route is where calls go. It must be set unless Replay is.
	Route *llm.Route
	// Replay, when set, answers in the place of Route.
	Replay *llm.Replay
	// Meter counts the calls, and refuses those beyond a budget. It must be set.
	Meter *llm.Meter
	// Recorder keeps what is answered; nil for none. Of its fields, those about opening
	// models do not count.
	Recorder *llm.Recorder
	// Offline refuses calls by which a provider reaches the network in the place of a caller
	// who may not: with tools that it would use itself, or with addresses in their content
	// that it would fetch.
	Offline bool
	// Stop, when set, is called when no further call can succeed, since a budget is used up
	// or a recording has no answer. The caller has been told by then. It must not wait for
	// Close.
	Stop func(error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	// Bounds that tests set; 0 means grace, slowest and maxKept.
	patience, slow time.Duration
	longest        int

	mu       sync.Mutex // guards what follows
	slots    chan struct{}
	held     int64
	until    context.Context
	close    context.CancelFunc // nil while it is closed
	under    sync.WaitGroup     // calls under way; none is added while it is closed
	answered int64
	failure  error
}

// NewKey returns a key that nobody can guess.
func NewKey() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails
	return "sk-proctor-" + hex.EncodeToString(b[:])
}

// Open lets calls in until Close.
func (g *Gateway) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.close == nil {
		g.until, g.close = context.WithCancel(context.Background())
		g.slots = make(chan struct{}, maxCalls)
	}
}

// Bounds of what callers, and a provider, can keep busy at once.
const (
	maxCalls = 64        // under way; others wait
	maxHeld  = 512 << 20 // bytes of requests and answers

	// grace is how long a provider's answer is still read when its caller has gone: what it
	// used is told at its end, and leaving just before must not make it free.
	grace = 15 * time.Second
	// slowest is how long a caller may take for a piece of an answer. While it does, the
	// call has a place among those of the model, which others may wait for.
	slowest = time.Minute
)

// Why calls that are under way end.
var (
	errClosed = fmt.Errorf("the gateway is closed: %w", context.Canceled)
	errGone   = fmt.Errorf("the caller has gone: %w", context.Canceled)
)

// Close refuses all calls from now on. Those under way are cut off; when Close returns all
// have ended, and are counted.
func (g *Gateway) Close() {
	g.mu.Lock()
	end := g.close
	g.close = nil
	g.mu.Unlock()
	if end != nil {
		end()
	}
	g.under.Wait()
}

// begin counts a call as under way, unless the gateway is closed. waiting ends with the caller
// and with the gateway, asking some time after the caller. cut is called when the gateway is
// closed before the call has ended.
func (g *Gateway) begin(of context.Context, cut func()) (waiting, asking context.Context, end func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.close == nil {
		return nil, nil, nil, false
	}
	waiting, stop := context.WithCancelCause(of)
	asking, giveUp := context.WithCancelCause(context.WithoutCancel(of))
	patience := cmp.Or(g.patience, grace)
	unlink := context.AfterFunc(g.until, func() {
		stop(errClosed)
		giveUp(errClosed)
		cut()
	})
	stay := context.AfterFunc(of, func() {
		if clock.Sleep(asking, patience) == nil {
			giveUp(errGone)
		}
	})
	g.under.Add(1)
	return waiting, asking, func() {
		unlink()
		stay()
		stop(nil)
		giveUp(nil)
		g.under.Done()
	}, true
}

// place waits until a call may go on beside the others. It is given back by leaving.
func (g *Gateway) place(ctx context.Context) (leave func(), ok bool) {
	g.mu.Lock()
	slots := g.slots
	g.mu.Unlock()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, true
	case <-ctx.Done():
		return nil, false
	}
}

// hold counts memory as in use, unless there is too much of it.
func (g *Gateway) hold(n int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n > 0 && g.held+n > maxHeld {
		return false
	}
	g.held += n
	return true
}

// Answered is how many calls the model has answered.
func (g *Gateway) Answered() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.answered
}

// Failure is why the call that ended last failed; nil if it did not. Calls that were
// refused here, or that their caller gave up, do not count.
func (g *Gateway) Failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failure
}

// note keeps how a call ended.
func (g *Gateway) note(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failure = err
	if err == nil {
		g.answered++
	}
}

// ServeHTTP answers a call.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	op, known := operationOf(r)
	c := &call{g: g, op: op, w: w, r: r, now: clock.Or(g.Now)}
	switch {
	case !known:
		c.deny(http.StatusNotFound, "the gateway has no "+shown(r.Method)+" "+shown(r.URL.Path)+
			": it serves chat/completions, responses, messages and models/…:generateContent")
		return
	case subtle.ConstantTimeCompare([]byte(keyOf(r)), []byte(g.Key)) != 1 || g.Key == "":
		c.deny(http.StatusUnauthorized, "the gateway's key is missing or another one: programs find it in the variables that they are given")
		return
	}
	if !c.op.lists && !slices.Contains(g.Protocols, op.api) {
		c.deny(http.StatusNotFound, fmt.Sprintf("model %s is not spoken to in the protocol %q, but in %q", g.Model, op.api, g.Protocols))
		return
	}
	control := http.NewResponseController(w)
	waiting, asking, end, open := g.begin(r.Context(), func() {
		// A caller who sends or takes nothing must not keep Close waiting.
		_ = control.SetReadDeadline(longAgo())
		_ = control.SetWriteDeadline(longAgo())
	})
	if !open {
		c.deny(http.StatusForbidden, "no model can be called now: the agent's time is over, or has not begun")
		return
	}
	defer end()
	leave, ok := g.place(waiting)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	defer leave()
	defer c.release()
	c.asking = asking
	c.serve(waiting)
}

// longAgo is a deadline that ends what is going on.
func longAgo() time.Time { return time.Unix(1, 0) }

// info is what is known of the model.
func (g *Gateway) info() llm.Info {
	if g.Replay != nil {
		info, _ := g.Replay.Known(g.Model)
		return info
	}
	return g.Route.Info
}
