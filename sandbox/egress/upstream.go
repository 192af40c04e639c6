package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
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
	// DialUDP connects a socket for datagrams; nil means a net.Dialer's. The
	// proxy has no use for it, sandboxes with a network of their own do.
	DialUDP func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// NameServers lists those that sandboxes with a network of their own ask,
	// in order; nil means those of the host's resolv.conf(5). They may be
	// services of the host: only questions about names reach them.
	NameServers func() []netip.AddrPort
	// Machine lets this machine's own addresses at its interfaces be dialled, and
	// the networks that are attached to it alone, those of containers. Loopback,
	// link-local addresses and the metadata of clouds are not.
	Machine bool
	// Own reports whether an address is one of those; nil means that this machine's
	// interfaces and routes are looked at.
	Own func(netip.Addr) bool
	// Local lets all addresses be dialled, loopback and link-local ones too. It
	// gives sandboxes the services of the host, and is meant for tests.
	Local bool
}

const (
	// dialLimit bounds one attempt to connect, dialTries how many addresses
	// of a name are tried.
	dialLimit = 15 * time.Second
	dialTries = 6
)

// errForbidden is returned for addresses that are never dialled.
var errForbidden = errors.New("the address is one of this machine, its links and networks, or its cloud's metadata, which no sandbox reaches")

// connect resolves a host once and dials what came out, in order.
func (u Upstream) connect(ctx context.Context, t target) (net.Conn, error) {
	addrs, err := u.resolve(ctx, t.host)
	if err != nil {
		return nil, fmt.Errorf("resolving %s: %w", t.host, err)
	}
	var errs []error
	tries := 0
	for _, addr := range addrs {
		if u.Refuses(addr) {
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
	return u.Connect(ctx, "tcp", to)
}

// Refuses reports whether no sandbox reaches an address: it leads to this machine
// itself, to its links, to networks that are attached to it alone or to the metadata
// of its cloud, also as an IPv4 address inside of an IPv6 one. It is the one rule for
// the proxy and for sandboxes with a network of their own.
func (u Upstream) Refuses(addr netip.Addr) bool {
	if u.Local {
		return false
	}
	return slices.ContainsFunc(meanings(addr), func(a netip.Addr) bool { return forbidden(a) || !u.Machine && u.owns(a) })
}

func (u Upstream) owns(addr netip.Addr) bool {
	if u.Own != nil {
		return u.Own(addr)
	}
	return ownAddress(addr)
}

// Connect dials an address, without asking Refuses; network is "tcp" or "udp".
func (u Upstream) Connect(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	switch {
	case network == "udp" && u.DialUDP != nil:
		return u.DialUDP(ctx, to)
	case network == "tcp" && u.Dial != nil:
		return u.Dial(ctx, to)
	}
	d := net.Dialer{Control: noBroadcast}
	c, err := d.DialContext(ctx, network, to.String())
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return c, nil
}
