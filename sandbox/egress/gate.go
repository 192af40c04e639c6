package egress

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress/tunnel"
)

// Options of a Gate.
type Options struct {
	// Exec runs a command in the sandbox, as sandbox.Sandbox has it, without
	// going through the Gate.
	Exec ExecFunc
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
	l := newLink(g.opts.Exec, g.opts.Relay)
	if err := l.start(ctx, g.serve, g.lost); err != nil {
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

func (g *Gate) serve(s *tunnel.Stream) { g.proxy.Serve(s.Context(), s) }

func (g *Gate) lost(why error) {
	g.proxy.note(fmt.Sprintf("the relay in the sandbox is gone, so that nothing can be reached: %v", why))
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

// Renew does something while there is no relay, and starts another one when that is
// done without an error. Connections end.
func (g *Gate) Renew(ctx context.Context, meanwhile func() error) error {
	select {
	case g.switching <- struct{}{}:
		defer func() { <-g.switching }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	g.mu.Lock()
	old := g.link
	g.mu.Unlock()
	old.stop()
	if err := meanwhile(); err != nil {
		return err
	}
	if err := old.wait(ctx); err != nil {
		return fmt.Errorf("waiting for the relay of the egress proxy: %w", err)
	}
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
		if err := l.wait(ctx); err != nil {
			return fmt.Errorf("waiting for the relay of the egress proxy: %w", err)
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
