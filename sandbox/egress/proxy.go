package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox"
)

const (
	// headerLimit bounds the time for a request's header, headerBytes its
	// size.
	headerLimit = time.Minute
	headerBytes = 64 << 10
	// idleLimit ends a connection over which nothing went that long. Answers
	// of models can take many minutes to begin.
	idleLimit = 30 * time.Minute
	// lingerLimit is how long a client has to read the last answer before
	// its connection is cut.
	lingerLimit = 5 * time.Second
	// bufferSize of one direction of a connection.
	bufferSize = 32 << 10
)

// Client is a connection of a program that asks the proxy: a *net.TCPConn or a
// *tunnel.Stream.
type Client interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Proxy is a forward proxy for HTTP/1.1, CONNECT and SOCKS5. Its methods may be
// called concurrently.
type Proxy struct {
	up  Upstream
	log recorder
	now func() time.Time

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	served sync.WaitGroup // none is added once closed

	mu     sync.Mutex // guards the rest
	policy Policy
	visits map[*visit]struct{}
	closed bool
}

var (
	errProxyClosed   = errors.New("the sandbox is being destroyed")
	errPolicyChanged = errors.New("the network policy changed")
	errIdle          = fmt.Errorf("nothing was sent for %v", idleLimit)
)

// NewProxy makes a proxy. log receives Lines and may be nil; now is the clock
// of the log, nil means time.Now.
func NewProxy(policy Policy, up Upstream, log io.Writer, now func() time.Time) *Proxy {
	p := &Proxy{up: up, log: recorder{w: log}, now: clock.Or(now), policy: policy, visits: map[*visit]struct{}{}}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// SetPolicy changes what is allowed. Connections to hosts that are not allowed
// any more are closed.
func (p *Proxy) SetPolicy(policy Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.policy = policy
	for v := range p.visits {
		if !policy.Allows(v.host) || v.serverName != "" && !policy.Allows(v.serverName) {
			v.end(errPolicyChanged)
		}
	}
}

// Close ends all connections and waits for them.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for v := range p.visits {
		v.end(errProxyClosed)
	}
	p.mu.Unlock()
	p.cancel(errProxyClosed)
	p.served.Wait()
}

// Serve answers one client until its connection is over. It closes c.
func (p *Proxy) Serve(ctx context.Context, c Client) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		_ = c.Close()
		return
	}
	p.served.Add(1)
	p.mu.Unlock()
	defer p.served.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	closed := make(chan struct{})
	shut := func() { // also when the proxy is closed, so that no read waits
		defer close(closed)
		_ = c.Close()
	}
	stop := context.AfterFunc(p.ctx, shut) //nolint:contextcheck // that of the proxy; the client's own reaches serve
	newSession(p, c).serve(ctx)
	if stop() {
		_ = c.Close()
	} else {
		<-closed
	}
}

// visit is one request to a host, and a line of the log.
type visit struct {
	target
	proxy  *Proxy
	ctx    context.Context
	cancel context.CancelCauseFunc
	start  time.Time

	up, down atomic.Int64

	// Guarded by Proxy.mu.
	serverName string // in TLS
	conn       net.Conn

	// Of the goroutine that serves.
	allowed bool
	reason  string
}

// decide asks the policy about a host. Every visit is given to finish.
func (p *Proxy) decide(ctx context.Context, t target) *visit {
	v := &visit{target: t, proxy: p, start: p.now()}
	v.ctx, v.cancel = context.WithCancelCause(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	v.allowed = p.policy.Allows(t.host) && !p.closed
	v.reason = p.policy.why(v.allowed)
	if v.allowed {
		p.visits[v] = struct{}{}
	}
	return v
}

// end closes the visit's connection; Proxy.mu is held.
func (v *visit) end(why error) {
	v.cancel(why)
	if v.conn != nil {
		_ = v.conn.Close()
	}
}

// connect dials the host of an allowed visit.
func (v *visit) connect() (net.Conn, error) {
	c, err := v.proxy.up.connect(v.ctx, v.target)
	if err == nil {
		v.proxy.mu.Lock()
		v.conn = c
		if v.ctx.Err() != nil {
			_ = c.Close()
			err = context.Cause(v.ctx)
		}
		v.proxy.mu.Unlock()
	}
	switch {
	case err == nil:
		return &counted{Conn: c, v: v}, nil
	case v.ctx.Err() != nil:
		err = context.Cause(v.ctx)
	case errors.Is(err, errForbidden):
		v.allowed = false
	}
	v.reason = err.Error()
	return nil, err
}

// checkName asks the policy about the server name that a client asks for in
// TLS.
func (v *visit) checkName(name string) error {
	p := v.proxy
	normal, err := normalHost(name)
	if err != nil {
		return fmt.Errorf("the TLS server name: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if normal == v.host || p.policy.Allows(normal) {
		v.serverName = normal
		return nil
	}
	return fmt.Errorf("the TLS server name %q is %s", clip(name), p.policy.why(false))
}

// finish closes what the visit opened and writes its line.
func (v *visit) finish() {
	p := v.proxy
	p.mu.Lock()
	delete(p.visits, v)
	if v.conn != nil {
		_ = v.conn.Close()
	}
	p.mu.Unlock()
	if v.allowed {
		switch cause := context.Cause(v.ctx); {
		case errors.Is(cause, errPolicyChanged), errors.Is(cause, errProxyClosed), errors.Is(cause, errIdle):
			v.reason += "; closed: " + cause.Error()
		}
	}
	v.cancel(nil)
	p.log.record(Line{
		Time: v.start, Host: v.host, Port: v.port, Allowed: v.allowed, Reason: v.reason,
		BytesUp: v.up.Load(), BytesDown: v.down.Load(),
	})
}

// note writes a line that concerns no host.
func (p *Proxy) note(reason string) { p.log.record(Line{Time: p.now(), Reason: reason}) }

// mode is the policy's, for messages.
func (p *Proxy) mode() sandbox.NetworkMode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.policy.Mode
}

// counted counts what goes over a connection.
type counted struct {
	net.Conn
	v *visit
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.v.down.Add(int64(n))
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.v.up.Add(int64(n))
	return n, err
}

// closeWrite ends one direction, where the connection can do that.
func (c *counted) closeWrite() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}
