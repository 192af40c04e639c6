package egress

import "net/netip"

// metadata is where clouds tell a machine what only it may know, credentials among
// it, besides the link-local addresses that most of them use. Some answer questions
// about names there too: the name server of a sandbox's network asks them, the sandbox
// does not.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google
	netip.MustParsePrefix("fd00:42::42/128"),    // Scaleway
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.0/24"),       // Oracle's 192.0.0.192; protocols' own (RFC 6890)
}

// embeddings are where IPv6 addresses have an IPv4 address in them, and at which of
// their bytes. A gateway, of this machine or on its way, may lead there.
var embeddings = []struct {
	in netip.Prefix
	at int
}{
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible (RFC 4291)
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated (RFC 2765)
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64 (RFC 6052)
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},  // NAT64 of a network's own (RFC 8215)
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4 (RFC 3056)
}

// meanings are an address as it is, and the IPv4 address that it stands for.
func meanings(addr netip.Addr) []netip.Addr {
	addr = addr.Unmap().WithZone("")
	all := []netip.Addr{addr}
	for _, e := range embeddings {
		if e.in.Contains(addr) {
			b := addr.As16()
			all = append(all, netip.AddrFrom4([4]byte(b[e.at:e.at+4])))
		}
	}
	return all
}

// forbidden recognises addresses that lead to this machine's loopback, to its links
// or to what its cloud tells it, by themselves: whatever its interfaces are.
func forbidden(addr netip.Addr) bool {
	if !addr.IsValid() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsUnspecified() || addr.IsMulticast() ||
		addr.IsInterfaceLocalMulticast() || addr.Is4() && (addr.As4()[0] == 0 || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255})) {
		return true
	}
	for _, p := range metadata {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
