package egress

import (
	"net"
	"net/netip"
)

// atInterface reports whether an interface of this machine has an address. Where
// that cannot be told it may have.
func atInterface(addr netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		if own, ok := netip.AddrFromSlice(n.IP); ok && own.Unmap() == addr {
			return true
		}
	}
	return false
}
