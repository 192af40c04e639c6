package usernet

import "net/netip"

// Addresses inside a sandbox's network, which is laid out as that of common
// user-mode networks. Of the networks outside, these few addresses cannot be
// reached.
var (
	// Network4 and Network6 are on the sandbox's device.
	network4 = netip.MustParsePrefix("10.0.2.15/24")
	network6 = netip.MustParsePrefix("fd70:726f:6374:2::15/64")
	// gateway4 and gateway6 are where all else is reached through, and answer
	// echo requests.
	gateway4 = netip.MustParseAddr("10.0.2.2")
	gateway6 = netip.MustParseAddr("fd70:726f:6374:2::2")
	// resolver4 and resolver6 are name servers.
	resolver4 = netip.MustParseAddr("10.0.2.3")
	resolver6 = netip.MustParseAddr("fd70:726f:6374:2::3")
)

// Resolver is the address of the name server in every sandbox's network.
func Resolver() netip.Addr { return resolver4 }

// DeviceName is that of the sandbox's device, as in containers of engines.
const DeviceName = "eth0"
