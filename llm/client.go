package llm

import (
	"context"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/proctor-run/proctor/internal/clock"
)

// Client opens models, and is shared by whatever calls them at the same time: calls of one
// model with one key take turns when its provider says that they are too many.
//
// A call that failed is made again where that may help:
//
//   - a connection or server that failed, up to 3 attempts in all, 4 seconds apart or as
//     long as the provider asks (Harbor's agents, section 5.3);
//   - too many requests, up to 10 times: no call of the model is made until the time that
//     the provider named, or a growing one, and fewer at once afterwards.
//
// Only Dial is needed. The fields are set before the first call.
type Client struct {
	// Dial makes the models; that of package llm/providers knows all protocols.
	Dial Dialer
	// Lookup finds variables of the host's environment: keys and addresses. Nil means
	// that there are none.
	Lookup func(name string) (string, bool)
	// HTTP makes the requests; nil for one that follows no redirect, since keys are in
	// headers that would go along.
	HTTP *http.Client
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Wait waits until the time has passed or ctx ended; nil waits in earnest.
	Wait func(ctx context.Context, d time.Duration) error
	// Known are limits and prices that count before those of [KnownModels]; may be nil.
	Known *Table
	// PerMinute bounds how many calls of one model begin within a minute, evenly spaced;
	// 0 is no bound.
	PerMinute int

	mu     sync.Mutex
	gates  map[gateKey]*gate
	client *http.Client // where HTTP is nil
}

// gateKey is what a provider counts calls by.
type gateKey struct {
	api              API
	base, key, model string
}

// Open finds the model of a name. The error is an [*Error] or one of the name.
func (c *Client) Open(name string, o Options) (Model, error) {
	e, err := c.endpoint(name, o)
	if err != nil {
		return nil, err
	}
	m, err := c.Dial(e)
	if err != nil {
		return nil, err
	}
	return &opened{Model: m, client: c, gate: c.gate(e)}, nil
}

func (c *Client) gate(e Endpoint) *gate {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := gateKey{e.API, e.Base, e.Key, e.Model}
	g := c.gates[key]
	if g == nil {
		g = &gate{limit: math.Inf(1), now: clock.Or(c.Now), wait: c.wait, changed: make(chan struct{}, 1)}
		if c.PerMinute > 0 {
			g.interval = time.Minute / time.Duration(c.PerMinute)
		}
		if c.gates == nil {
			c.gates = map[gateKey]*gate{}
		}
		c.gates[key] = g
	}
	return g
}

// idleConns is how many connections to one server are kept for the next calls: those of
// many trials at once.
const idleConns = 256

func (c *Client) http() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		c.client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			own := t.Clone()
			own.MaxIdleConns, own.MaxIdleConnsPerHost = idleConns, idleConns
			c.client.Transport = own
		}
	}
	return c.client
}

func (c *Client) wait(ctx context.Context, d time.Duration) error {
	if c.Wait != nil {
		return c.Wait(ctx, d)
	}
	return clock.Sleep(ctx, d)
}

func (c *Client) lookup(name string) (string, bool) {
	if c.Lookup == nil {
		return "", false
	}
	return c.Lookup(name)
}

// opened is a model whose calls are repeated, take turns and are priced.
type opened struct {
	Model
	client *Client
	gate   *gate
}

// What a call is repeated for.
const (
	maxFailures   = 3               // attempts that a provider's failure ends
	maxRejections = 10              // of calls that were too many
	failureWait   = 4 * time.Second // before the next attempt
	longestWait   = time.Minute     // between rejections, unless the provider asks for more
	// longestAsked is the longest that a provider may ask to wait for. Beyond it an
	// account's limit for a day is meant, and the error is of more use.
	longestAsked = 10 * time.Minute
)

// Complete calls the model.
func (m *opened) Complete(ctx context.Context, req *Request) (resp *Response, err error) {
	err = m.client.repeat(ctx, m.gate, func(ctx context.Context) (err error) {
		resp, err = m.Model.Complete(ctx, req)
		return err
	})
	if err != nil {
		return nil, err
	}
	m.price(resp)
	return resp, nil
}

// price makes the cost of the usage, where the provider did not say it.
func (m *opened) price(r *Response) {
	if prices := m.Info().Prices; r.Cost == nil && r.Usage != nil && prices != nil {
		cost := prices.Cost(*r.Usage)
		r.Cost = &cost
	}
}
