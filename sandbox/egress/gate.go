package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress/tunnel"
)

// relayLimit bounds the start of a relay.
const relayLimit = 30 * time.Second

// Options of a Gate.
type Options struct {
	// Exec runs a command in the sandbox, as sandbox.Sandbox has it, without
	// going through the Gate.
	Exec func(context.Context, sandbox.Command) (sandbox.ExitStatus, error)
	// Relay is the guest program in the sandbox with its argument.
	Relay []string

	Policy   Policy
	Log      io.Writer // see sandbox.Network
	Upstream Upstream
	Now      func() time.Time // nil means time.Now
}

// Gate is the way out of one sandbox: a proxy, and a relay inside that carries
// connections to it.
type Gate struct {
	opts  Options
	proxy *Proxy

	switching chan struct{} // holds one SetPolicy

	mu    sync.Mutex // guards the rest
	link  *link
	links []*link // all there have been
	shut  bool
}

// Open starts a relay in the sandbox. On an error nothing is left but what the
// end of the sandbox ends.
func Open(ctx context.Context, o Options) (*Gate, error) {
	g := &Gate{
		opts: o, proxy: NewProxy(o.Policy, o.Upstream, o.Log, o.Now), switching: make(chan struct{}, 1),
	}
	if err := g.connect(ctx); err != nil {
		g.Shut()
		return nil, err
	}
	return g, nil
}

// connect starts a relay unless one is running.
func (g *Gate) connect(ctx context.Context) error {
	g.mu.Lock()
	old := g.link
	g.mu.Unlock()
	if old != nil && old.alive() {
		return nil
	}
	l, err := g.startLink(ctx)
	if err != nil {
		return fmt.Errorf("starting the relay of the egress proxy: %w", err)
	}
	g.mu.Lock()
	g.link, g.links = l, append(g.links, l)
	shut := g.shut
	g.mu.Unlock()
	if shut {
		l.stop()
		return sandbox.ErrDestroyed
	}
	return nil
}

// Restrict changes what can be reached, see Proxy.SetPolicy, and nothing else.
func (g *Gate) Restrict(policy Policy) { g.proxy.SetPolicy(policy) }

// SetPolicy changes what can be reached, see Proxy.SetPolicy. Where the relay
// has died another one is started.
func (g *Gate) SetPolicy(ctx context.Context, policy Policy) error {
	select {
	case g.switching <- struct{}{}:
		defer func() { <-g.switching }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	g.proxy.SetPolicy(policy)
	return g.connect(ctx)
}

// Shut ends all connections and lets the relay end. It does not wait for the
// relay, and may be called repeatedly.
func (g *Gate) Shut() {
	g.mu.Lock()
	g.shut = true
	l := g.link
	g.mu.Unlock()
	if l != nil {
		l.stop()
	}
	g.proxy.Close()
}

// Wait returns after Shut when the relay has ended too, which the end of the
// sandbox makes sure of.
func (g *Gate) Wait(ctx context.Context) error {
	g.mu.Lock()
	links := g.links
	g.mu.Unlock()
	for _, l := range links {
		select {
		case <-l.done:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the relay of the egress proxy: %w", context.Cause(ctx))
		}
	}
	return nil
}

// notProxied are the hosts that programs must not ask the proxy for.
const notProxied = "localhost,127.0.0.1,::1"

// Command is cmd with the variables by which programs find the proxy. Of what
// base, the environment below the command's, and the command itself say of
// them only additions to NO_PROXY count.
func (g *Gate) Command(cmd sandbox.Command, base []string) sandbox.Command {
	cmd.Env = append(slices.Clone(cmd.Env), g.Env(base, cmd.Env)...)
	return cmd
}

// Env are the variables by which programs find the proxy; own are environments,
// later ones above earlier ones, whose NO_PROXY is added.
func (g *Gate) Env(own ...[]string) []string {
	g.mu.Lock()
	port := g.link.port
	g.mu.Unlock()
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	none := notProxied
	if more := noProxy(own); more != "" {
		none += "," + more
	}
	var env []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"="+url, strings.ToLower(name)+"="+url)
	}
	return append(env, "NO_PROXY="+none, "no_proxy="+none)
}

func noProxy(environments [][]string) string {
	value := ""
	for _, env := range environments {
		for _, kv := range env {
			if name, v, _ := strings.Cut(kv, "="); strings.EqualFold(name, "NO_PROXY") {
				value = v
			}
		}
	}
	return value
}

// link is one relay and the pipes to it.
type link struct {
	port   uint16
	stdin  *io.PipeWriter
	stdout *io.PipeReader
	dead   chan struct{} // closed when it carries nothing any more
	ended  chan struct{} // closed when the relay's command is over
	done   chan struct{} // closed when all of it is over

	mu      sync.Mutex
	stopped bool // on purpose
}

// startLink starts a relay and serves what it carries.
//
// The relay's command is never cancelled once it runs: that would end what
// other commands left running since. It ends with its standard input.
func (g *Gate) startLink(ctx context.Context) (*link, error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	l := &link{
		stdin: inW, stdout: outR,
		dead: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{}),
	}
	// The relay lives as long as the sandbox, not as long as this call.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var end error
	go func() { // joined by serveLink, or below
		defer close(l.ended)
		defer cancel()
		end = g.runRelay(run, inR, outW)
		_ = outW.CloseWithError(io.EOF)
		_ = inR.CloseWithError(io.ErrClosedPipe)
	}()
	limit, stopLimit := context.WithTimeoutCause(ctx, relayLimit, fmt.Errorf("no answer within %v", relayLimit))
	defer stopLimit()
	stop := context.AfterFunc(limit, l.closePipes)
	port, err := tunnel.ReadHello(outR)
	if !stop() {
		err = context.Cause(limit)
	}
	if err != nil {
		l.closePipes()
		cancel()
		<-l.ended
		if limit.Err() == nil {
			err = errors.Join(err, end)
		}
		return nil, err
	}
	l.port = port
	go func() { //nolint:contextcheck // joined by Wait: the link outlives the call that made it
		defer close(l.done)
		why := g.serveLink(l)
		if l.onPurpose() {
			<-l.ended
			return
		}
		select {
		case <-l.ended:
			why = end
		case <-time.After(time.Second): // the pipes are closed, but the program goes on
		}
		g.proxy.note(fmt.Sprintf("the relay in the sandbox is gone, so that nothing can be reached: %v", why))
		<-l.ended
	}()
	return l, nil
}

// runRelay runs the relay to its end, and says how it ended.
func (g *Gate) runRelay(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	said := bounded.NewTail(2 << 10)
	status, err := g.opts.Exec(ctx, sandbox.Command{
		Argv: g.opts.Relay, User: "0:0", Dir: "/", Stdin: stdin, Stdout: stdout, Stderr: said,
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("it ended with code %d: %s", status.Code, strings.TrimSpace(said.String()))
}

// serveLink serves the connections that the relay carries, until it carries
// none any more, and says why.
func (g *Gate) serveLink(l *link) error {
	m := tunnel.NewMux(l.stdout, l.stdin)
	var why error
	var work sync.WaitGroup
	work.Go(func() {
		why = m.Run()
		l.closePipes()
	})
	for {
		s, err := m.Accept()
		if err != nil {
			break
		}
		work.Go(func() { g.proxy.Serve(s.Context(), s) })
	}
	close(l.dead)
	work.Wait()
	return why
}

func (l *link) closePipes() {
	_ = l.stdin.Close()
	_ = l.stdout.Close()
}

// stop lets the relay end.
func (l *link) stop() {
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.closePipes()
}

func (l *link) onPurpose() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

func (l *link) alive() bool {
	select {
	case <-l.dead:
		return false
	default:
		return true
	}
}
