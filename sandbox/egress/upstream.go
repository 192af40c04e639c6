package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Upstream is how a proxy reaches the world. The zero value is the host's own
// resolver and network.
type Upstream struct {
	// Lookup resolves a host name; nil means the host's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects; nil means a net.Dialer's.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// Local lets loopback and link-local addresses be dialled too. It gives
	// sandboxes the services of the host, and is meant for tests.
	Local bool
}

const (
	// dialLimit bounds one attempt to connect, dialTries how many addresses
	// of a name are tried.
	dialLimit = 15 * time.Second
	dialTries = 6
)

// errForbidden is returned for addresses that are never dialled.
var errForbidden = errors.New("the address is one of this machine or its links, which no sandbox reaches")

// connect resolves a host once and dials what came out, in order.
func (u Upstream) connect(ctx context.Context, t target) (net.Conn, error) {
	addrs, err := u.resolve(ctx, t.host)
	if err != nil {
		return nil, fmt.Errorf("resolving %s: %w", t.host, err)
	}
	var errs []error
	tries := 0
	for _, addr := range addrs {
		if !u.Local && forbidden(addr) {
			errs = append(errs, fmt.Errorf("connecting to %s: %w", addr, errForbidden))
			continue
		}
		if tries++; tries > dialTries {
			break
		}
		c, err := u.dial(ctx, netip.AddrPortFrom(addr, t.port))
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if len(errs) == 0 {
		return nil, fmt.Errorf("resolving %s: no addresses", t.host)
	}
	return nil, errors.Join(errs...)
}

func (u Upstream) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	if u.Lookup != nil {
		return u.Lookup(ctx, host)
	}
	if strings.Contains(host, ".") {
		host += "." // keeps the search domains of this machine out
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

func (u Upstream) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	if u.Dial != nil {
		return u.Dial(ctx, to)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", to.String())
}
