//go:build !linux

package egress

import "net/netip"

// ownAddress reports whether an address is one of this machine's at any interface.
func ownAddress(addr netip.Addr) bool { return atInterface(addr) }
