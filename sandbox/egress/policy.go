package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/sandbox"
)

// Policy says which hosts may be reached. The zero value allows all, as that of
// sandbox.Network does.
type Policy struct {
	Mode  sandbox.NetworkMode
	Hosts []string // lower case, without a trailing dot
}

// Allows reports whether a host, as normalHost returns it, may be reached.
func (p Policy) Allows(host string) bool {
	switch p.Mode {
	case "", sandbox.NetworkPublic:
		return true
	case sandbox.NetworkAllowlist:
	default:
		return false
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return slices.ContainsFunc(p.Hosts, func(entry string) bool {
			listed, err := netip.ParseAddr(entry)
			return err == nil && listed.Unmap() == addr
		})
	}
	return slices.ContainsFunc(p.Hosts, func(entry string) bool {
		if parent, ok := strings.CutPrefix(entry, "*"); ok && strings.HasPrefix(parent, ".") {
			return len(host) > len(parent) && strings.HasSuffix(host, parent)
		}
		return host == entry
	})
}

// why says in a few words what decided about a host.
func (p Policy) why(allowed bool) string {
	switch {
	case allowed && p.Mode == sandbox.NetworkAllowlist:
		return "in allowed_hosts"
	case allowed:
		return "network_mode is public"
	case p.Mode == sandbox.NetworkAllowlist:
		return "not in allowed_hosts"
	}
	return "network_mode is " + string(p.Mode)
}

// maxHost is the longest host name there is.
const maxHost = 253

// normalHost brings a host name or address into the form that policies compare:
// lower case, no trailing dot; addresses as netip writes them, without
// brackets, and IPv4 ones never as IPv6.
func normalHost(host string) (string, error) {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
		if len(host) == len(inner) {
			return "", errors.New("a bracket is not closed")
		}
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" {
			return "", fmt.Errorf("%q is not an address", clip(host))
		}
		return addr.Unmap().String(), nil
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", errors.New("addresses with a zone are not reached")
		}
		return addr.Unmap().String(), nil
	}
	host = strings.TrimSuffix(host, ".")
	if host == "" || len(host) > maxHost {
		return "", fmt.Errorf("host name of %d bytes", len(host))
	}
	return lowerName(host)
}

// lowerName is a host name in lower case.
func lowerName(host string) (string, error) {
	lower := []byte(host)
	for i, c := range lower {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		case c >= 'A' && c <= 'Z':
			lower[i] = c + 'a' - 'A'
		default:
			return "", fmt.Errorf("%q is not a host name", clip(host))
		}
	}
	return string(lower), nil
}

// clip keeps what is quoted of a client's words short.
func clip(s string) string { return s[:min(len(s), 100)] }

// target is where a request leads.
type target struct {
	host string // as normalHost returns it
	port uint16
}

func (t target) String() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// parseTarget reads "host:port"; defaultPort 0 means that the port must be
// there.
func parseTarget(hostport string, defaultPort uint16) (target, error) {
	host, port := hostport, ""
	if i := strings.LastIndexByte(hostport, ':'); i >= 0 && !strings.HasSuffix(hostport, "]") {
		host, port = hostport[:i], hostport[i+1:]
	}
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		return target{}, fmt.Errorf("%q: an IPv6 address has to be in brackets", clip(hostport))
	}
	t := target{port: defaultPort}
	var err error
	if t.host, err = normalHost(host); err != nil {
		return target{}, err
	}
	if port != "" || defaultPort == 0 {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return target{}, fmt.Errorf("%q is not a port", clip(port))
		}
		t.port = uint16(n)
	}
	return t, nil
}
