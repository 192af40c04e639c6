package network

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/proctor-run/proctor/sandbox/internal/usernet"
	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
)

// Kind is what network namespace a sandbox is in.
type Kind int

const (
	// Own is a namespace of the sandbox's own with a device, whose other
	// end is in this process.
	Own Kind = iota
	// None is a namespace with a loopback device and nothing else.
	None
	// Host is the host's namespace, where no device can be made.
	Host
)

// Try says why sandboxes cannot have a network of their own, which is made with the
// device at a path.
func Try(tunPath string) error {
	f, err := os.OpenFile(tunPath, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("closing %q: %w", tunPath, err)
	}
	return nil
}

// HasIPv6 reports whether this machine has a way to all of IPv6.
func HasIPv6() bool { return defaultRoute6(hostfile.Small("/proc/net/ipv6_route")) }

// defaultRoute6 looks for a default route in the format of /proc/net/ipv6_route:
// destination, its prefix length, source, its prefix length, next hop, metric,
// references, use, flags, device.
func defaultRoute6(table string) bool {
	const fields, rejects = 10, "lo" // the routes that refuse lead there
	all := strings.Repeat("0", 32)
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) == fields && f[0] == all && f[1] == "00" && f[fields-1] != rejects {
			return true
		}
	}
	return false
}

// hostsElsewhere are the lines of a hosts(5) file that do not lead to the machine
// itself: in a sandbox these would lead to the sandbox.
func hostsElsewhere(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if addr, err := netip.ParseAddr(fields[0]); err == nil && !addr.IsLoopback() && !addr.IsMulticast() && !addr.IsUnspecified() {
			kept.WriteString(strings.Join(fields, "\t") + "\n")
		}
	}
	return kept.String()
}

// resolverInside is resolv.conf(5) with the name server of the sandbox's network
// in place of the host's.
func resolverInside(text string) string {
	kept := "nameserver " + usernet.Resolver().String() + "\n"
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 1 && (fields[0] == "search" || fields[0] == "domain" || fields[0] == "options") {
			kept += strings.Join(fields, " ") + "\n"
		}
	}
	return kept
}
