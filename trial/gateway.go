package trial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/httpserver"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/gateway"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
)

// GatewayMode says whether commands of agents reach models through this program.
type GatewayMode string

// The modes. The zero value is GatewayAuto.
const (
	// GatewayAuto: where the configuration names a model that can be found, and the sandbox
	// can carry the connections. Where calls are bounded or replayed it is GatewayOn.
	GatewayAuto GatewayMode = "auto"
	// GatewayOn: what keeps an agent that has a model from it ends the trial.
	GatewayOn GatewayMode = "on"
	// GatewayOff: agents find keys and models by themselves.
	GatewayOff GatewayMode = "off"
)

// modelGateway is the way of a trial's agent to its model. It is confined to the goroutine
// of the trial.
type modelGateway struct {
	gateway.Gateway
	required bool
	server   *http.Server
	serving  sync.WaitGroup
	address  string // in the sandbox; empty while nothing listens there

	mu   sync.Mutex // guards what follows
	stop context.CancelCauseFunc
}

// usesGateway reports whether an agent of this configuration is to have a gateway;
// required: the trial ends where it cannot.
func (a *attempt) usesGateway(e agent.Entry, c agent.Config) (uses, required bool) {
	required = a.r.Gateway == GatewayOn || a.r.Replay != nil || a.meter.Bounded()
	return e.Gateway && c.Model != "" && a.r.Gateway != GatewayOff && (c.Models != nil || required), required
}

// planGateway makes the gateway of the trial's agent; nil where it has none.
func (a *attempt) planGateway(e agent.Entry, c agent.Config) (*modelGateway, error) {
	uses, required := a.usesGateway(e, c)
	if !uses {
		return nil, nil
	}
	options, err := c.ModelOptions()
	if err != nil {
		return nil, err
	}
	g := &modelGateway{required: required}
	g.Model, g.Key, g.Protocols, g.Now, g.Stop = c.Model, gateway.NewKey(), llm.Protocols(c.Model, options), a.now, g.end
	if a.calls != nil {
		g.Recorder = &a.calls.Recorder
	}
	c.Models = a.r.Models
	counts := a.meter
	var routeErr error
	g.Route, routeErr = c.Route()
	if a.r.Replay != nil { // the route is for the key, which commands do not get
		counts = nil // what is replayed costs nothing
		g.Replay, err = a.calls.recording(a)
	} else if err = routeErr; err == nil {
		err = a.meter.CheckPrices(c.Model, g.Route.Info.Prices)
	}
	g.Meter = llm.NewMeter(llm.OfTrial, llm.Budget{}, counts)
	switch {
	case err == nil:
		return g, nil
	case required:
		return nil, err
	}
	a.log.printf("The agent's commands have no model gateway: %v", err)
	return nil, nil
}

// openGateway lets the sandbox reach the gateway. It is called before the agent, so that
// what carries the connections is not taken for something of the agent's.
func (a *attempt) openGateway(ctx context.Context) error {
	g := a.gateway
	if g == nil {
		return nil
	}
	l, err := listenIn(ctx, a.sandbox())
	if err == nil {
		g.address = "http://" + l.Addr().String()
		g.server = httpserver.New(g)
		g.serving.Go(func() { _ = g.server.Serve(l) })
		return nil
	}
	if g.required || !errors.Is(err, sandbox.ErrUnsupported) {
		return fmt.Errorf("letting the agent's commands reach their model: %w", err)
	}
	a.gateway = nil
	a.warn("this sandbox cannot carry connections to the model gateway: the agent's commands get the variables as they were given, keys too")
	return nil
}

// renewGateway lets the sandbox reach the gateway again when everything in it was ended.
func (a *attempt) renewGateway(ctx context.Context) error {
	g := a.gateway
	if g == nil || g.server == nil {
		return nil
	}
	_ = g.server.Close()
	g.serving.Wait()
	return a.openGateway(ctx)
}

// listenIn listens for what programs in a sandbox connect to.
func listenIn(ctx context.Context, sb sandbox.Sandbox) (net.Listener, error) {
	l, ok := sandbox.As[egress.Listener](sb)
	if !ok {
		return nil, sandbox.ErrUnsupported
	}
	return l.Listen(ctx)
}

// closeGateway ends the gateway. It may be called repeatedly.
func (a *attempt) closeGateway() {
	g := a.gateway
	if g == nil || g.server == nil {
		return
	}
	g.cutOff()
	_ = g.server.Close()
	g.serving.Wait()
}

// cutOffLimit is how long calls under way may take to end once they are cut off.
const cutOffLimit = 5 * time.Second

// cutOff ends the calls under way. Where root in the sandbox has stopped what carries the
// connections, so that an answer is stuck on its way, that is given up.
func (g *modelGateway) cutOff() {
	if g.server != nil {
		limit := time.AfterFunc(cutOffLimit, func() { _ = g.server.Close() })
		defer limit.Stop()
	}
	g.Close()
}

// vars are the variables of the agent's commands.
func (g *modelGateway) vars(own []string) []string { return g.Vars(own, g.address) }

// end ends the agent: none of its calls can succeed any more.
func (g *modelGateway) end(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stop != nil {
		g.stop(&stoppedError{why})
	}
}

// stoppedError is why the gateway has ended an agent.
type stoppedError struct{ why error }

func (e *stoppedError) Error() string { return e.why.Error() }
func (e *stoppedError) Unwrap() error { return e.why }

// during lets the agent call its model while it works, and makes what it used and how its
// model failed part of what came of that. A [*stoppedError] says that the gateway ended it.
func (g *modelGateway) during(ctx context.Context, network harbor.Network, work func(context.Context) (agent.Result, error)) (agent.Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g.mu.Lock()
	g.stop = stop
	g.mu.Unlock()
	before, answered, old := g.Meter.Spent(), g.Answered(), g.Failure()
	g.Offline = network.Mode != harbor.Public
	g.Open()
	result, err := work(ctx)
	g.cutOff()
	used := g.Meter.Spent().Minus(before)
	if used.Calls > 0 {
		result = withUsage(result, used)
	}
	if stopped, ok := errors.AsType[*stoppedError](context.Cause(ctx)); ok {
		return result, stopped
	}
	if failure := g.Failure(); failure != nil && !errors.Is(failure, old) {
		err = orFailure(err, failure, g.Answered() > answered)
	}
	return result, err
}

// withUsage has the numbers of the gateway in the place of the agent's. What was estimated
// is not known.
func withUsage(r agent.Result, used llm.Spent) agent.Result {
	r.InputTokens, r.CacheTokens, r.OutputTokens, r.CostUSD = nil, nil, nil, nil
	if used.Uncounted == 0 {
		r.InputTokens, r.CacheTokens, r.OutputTokens = &used.Prompt, &used.Cached, &used.Completion
		if used.Unpriced == 0 {
			r.CostUSD = &used.USD
		}
	}
	return r
}

// orFailure is the failure of the model where that is why the agent did not work: it was
// never answered, or the agent ended with an error after a call that was not, and that for
// another reason than what it asked. Such work is not judged.
func orFailure(err, failed error, answered bool) error {
	_, exited := errors.AsType[*agent.ExitError](err)
	switch {
	case err != nil && !exited, err == nil && answered:
		return err
	case answered && asksInVain(failed):
		return err
	}
	return failed
}

// asksInVain reports whether a call failed because of what was asked: an agent could ask so
// in order not to be judged.
func asksInVain(failed error) bool {
	switch llm.KindOf(failed) {
	case llm.BadRequest, llm.ContextLength, llm.Refused:
		return true
	}
	return false
}

// note tells of the gateway in the notes of the trial; nil where nothing could reach it.
func (g *modelGateway) note() *jobdir.GatewayNote {
	if g.server == nil {
		return nil
	}
	s := g.Meter.Spent()
	return &jobdir.GatewayNote{Model: g.Model, Calls: s.Calls, Uncounted: s.Uncounted}
}
