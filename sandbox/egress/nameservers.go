package egress

import (
	"bufio"
	"io"
	"net/netip"
	"os"
	"strings"
)

const (
	// resolvConf is where resolv.conf(5) lies; as much of it is read.
	resolvConf      = "/etc/resolv.conf"
	resolvConfLimit = 64 << 10
	// maxServers are asked, as resolv.conf(5) has it (MAXNS).
	maxServers = 3
	dnsPort    = 53
)

// Servers lists the name servers that sandboxes with a network of their own ask.
func (u Upstream) Servers() []netip.AddrPort {
	if u.NameServers != nil {
		return u.NameServers()
	}
	f, err := os.Open(resolvConf)
	if err != nil {
		return localServer()
	}
	defer func() { _ = f.Close() }()
	return parseServers(io.LimitReader(f, resolvConfLimit))
}

// localServer is asked where no other is named, as resolv.conf(5) has it.
func localServer() []netip.AddrPort {
	return []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), dnsPort)}
}

func parseServers(r io.Reader) []netip.AddrPort {
	var servers []netip.AddrPort
	lines := bufio.NewScanner(r)
	for lines.Scan() && len(servers) < maxServers {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if addr, err := netip.ParseAddr(fields[1]); err == nil {
			servers = append(servers, netip.AddrPortFrom(addr, dnsPort))
		}
	}
	if len(servers) == 0 {
		return localServer()
	}
	return servers
}
