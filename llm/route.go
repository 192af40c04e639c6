package llm

import "context"

// Router is an [Opener] that also tells where the calls of a model go that are not made
// through a [Model], but are passed on in the words of their protocol.
type Router interface {
	Opener
	// Route finds the way to the model of a name, as Open does. It makes no call.
	Route(name string, o Options) (*Route, error)
}

// Route is the way to a model for calls that somebody else has put into words. They take
// turns with all other calls of the model. It may be used by several goroutines.
type Route struct {
	// Endpoint is where calls go, and with which key.
	Endpoint
	client *Client
	gate   *gate
}

// Route finds the way to the model of a name, as Open does. It makes no call.
func (c *Client) Route(name string, o Options) (*Route, error) {
	e, err := c.endpoint(name, o)
	if err != nil {
		return nil, err
	}
	e.Info.Name = e.Name
	return &Route{Endpoint: e, client: c, gate: c.gate(e)}, nil
}

// Do makes a call in its turn, and again as [Client] says. The call is under way until
// once returns: with an [*Error] when nothing has come of it yet, so that it may be made
// again, else with nil. The error is the last one's.
func (r *Route) Do(ctx context.Context, once func(ctx context.Context) error) error {
	return r.client.repeat(ctx, r.gate, once)
}

// repeat makes attempts at a call until one succeeds or another would not help.
func (c *Client) repeat(ctx context.Context, g *gate, once func(ctx context.Context) error) error {
	turn := g.ticket()
	for failures, rejections := 0, 0; ; {
		err := g.attempt(ctx, turn, rejections, once)
		failed, ok := err.(*Error) //nolint:errorlint // what a provider returns, not what is inside of it
		if !ok || failed.RetryAfter > longestAsked {
			return err
		}
		switch failed.Kind {
		case RateLimited:
			if rejections++; rejections >= maxRejections {
				return err
			}
		case Transient:
			if failures++; failures >= maxFailures {
				return err
			}
			if err := c.wait(ctx, max(failureWait, failed.RetryAfter)); err != nil {
				return err
			}
		default:
			return err
		}
	}
}
