package egress

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ownAddress reports whether an address is one of this machine's at any interface,
// or of a network that is attached to this machine alone: the bridges and pairs of
// devices of containers and virtual machines. The kernel is asked anew each time, so
// that what changes is seen.
//
// Such a network is one that a route reaches without a gateway, through an interface
// that no default route uses. The network of the default route is that of this
// machine's neighbours, and behind a device from point to point, as VPNs have it, is
// the other end's: both are outside.
func ownAddress(addr netip.Addr) bool {
	routes, err := netlink.RouteGetWithOptions(addr.AsSlice(), &netlink.RouteGetOptions{FIBMatch: true})
	if err != nil || len(routes) == 0 { // no way leads there, or the kernel does not tell
		return atInterface(addr)
	}
	for _, r := range routes {
		switch r.Type {
		case unix.RTN_LOCAL, unix.RTN_BROADCAST, unix.RTN_ANYCAST, unix.RTN_MULTICAST:
			return true
		}
		for _, link := range directLinks(r) {
			if !leadsOut(link) {
				return true
			}
		}
	}
	// An address that has just been given has no route of its own yet.
	return atInterface(addr)
}

// directLinks are the interfaces through which a route reaches without a gateway.
func directLinks(r netlink.Route) []int {
	if isDefault(r) {
		return nil
	}
	if len(r.MultiPath) == 0 {
		if r.Gw == nil && r.Via == nil {
			return []int{r.LinkIndex}
		}
		return nil
	}
	var links []int
	for _, hop := range r.MultiPath {
		if hop.Gw == nil && hop.Via == nil {
			links = append(links, hop.LinkIndex)
		}
	}
	return links
}

func isDefault(r netlink.Route) bool {
	if r.Dst == nil {
		return true
	}
	ones, _ := r.Dst.Mask.Size()
	return ones == 0
}

// leadsOut reports whether an interface is one of a default route, or one from point
// to point. Where that cannot be told it is not.
func leadsOut(link int) bool {
	dev, err := net.InterfaceByIndex(link)
	if err != nil {
		return false
	}
	if dev.Flags&net.FlagPointToPoint != 0 {
		return true
	}
	found := false
	// Of an error there is nothing to be said: what was not found is not there.
	_ = netlink.RouteListFilteredIter(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE,
		func(r netlink.Route) bool {
			found = r.Type == unix.RTN_UNICAST && isDefault(r) && usesLink(r, link)
			return !found
		})
	return found
}

func usesLink(r netlink.Route, link int) bool {
	if r.LinkIndex == link {
		return true
	}
	for _, hop := range r.MultiPath {
		if hop.LinkIndex == link {
			return true
		}
	}
	return false
}
