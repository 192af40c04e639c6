package compose

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/moby/moby/client"
)

// defaultSubnets are private addresses (RFC 1918) beside those that engines
// and home networks use, and behind them, for machines where all of these are
// routed elsewhere, the addresses for benchmarks (RFC 2544). They hold 2,048
// and 4,096 networks of the usual size.
//
// An engine's own pools hold about 31 networks, far fewer than trials can run
// at once.
func defaultSubnets() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.213.0.0/16"), netip.MustParsePrefix("198.18.0.0/15")}
}

// SubnetsVar is the variable of the environment that names the ranges to use
// instead.
const SubnetsVar = "PROCTOR_DOCKER_SUBNETS"

// ParseSubnets reads ranges of IPv4 addresses, separated by commas; none are
// the default.
func ParseSubnets(text string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		p, err := netip.ParsePrefix(word)
		if err != nil || !p.Addr().Is4() || p.Bits() > subnetBits {
			return nil, fmt.Errorf("%s: %q is not a range of IPv4 addresses like 10.213.0.0/16", SubnetsVar, word)
		}
		list = append(list, p.Masked())
	}
	if list == nil {
		return defaultSubnets(), nil
	}
	return list, nil
}

// subnetBits is the size of a usual network: 29 containers and the gateway.
const subnetBits = 27

// subnetTries is how often another subnet is chosen when the engine says that
// the one that seemed free is not.
const subnetTries = 40

var errNoSubnet = errors.New("no addresses are left for the networks of compose projects: remove networks, or name a larger range in PROCTOR_DOCKER_SUBNETS")

// freeSubnet chooses a subnet with room for a number of containers that
// overlaps nothing in use. Which one is chance: several processes choose at
// the same time.
func freeSubnet(ranges, used []netip.Prefix, containers int) (netip.Prefix, error) {
	bits := subnetBits
	for bits > 16 && 1<<(32-bits)-3 < containers {
		bits--
	}
	for _, r := range ranges {
		if !r.Addr().Is4() || r.Bits() > bits {
			continue
		}
		count := uint32(1) << (bits - r.Bits())
		start := rand.Uint32N(count)
		for i := range count {
			if p := subnet(r, bits, (start+i)%count); !slices.ContainsFunc(used, p.Overlaps) {
				return p, nil
			}
		}
	}
	return netip.Prefix{}, errNoSubnet
}

// subnet is the n-th of the given size in a range.
func subnet(r netip.Prefix, bits int, n uint32) netip.Prefix {
	base := r.Masked().Addr().As4()
	binary.BigEndian.PutUint32(base[:], binary.BigEndian.Uint32(base[:])+n<<(32-bits))
	return netip.PrefixFrom(netip.AddrFrom4(base), bits)
}

// usedSubnets are the addresses of the engine's networks and, where the engine
// is on this machine, those that this machine has routes to.
func (e *Engine) usedSubnets(ctx context.Context) ([]netip.Prefix, error) {
	list, err := e.API.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing networks: %w", err)
	}
	var used []netip.Prefix
	for _, n := range list.Items {
		for _, c := range n.IPAM.Config {
			if c.Subnet.IsValid() {
				used = append(used, c.Subnet)
			}
		}
	}
	if e.Local {
		if table, err := os.ReadFile("/proc/net/route"); err == nil {
			used = append(used, routes(table)...)
		}
	}
	return used, nil
}

// routes reads the destinations of Linux's /proc/net/route, without the
// default route.
func routes(table []byte) []netip.Prefix {
	var found []netip.Prefix
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) < 8 {
			continue
		}
		addr, ok := routeAddr(fields[1])
		mask, ok2 := routeAddr(fields[7])
		if !ok || !ok2 || mask == 0 {
			continue
		}
		bits := 0
		for m := mask; m&(1<<31) != 0; m <<= 1 {
			bits++
		}
		var raw [4]byte
		binary.BigEndian.PutUint32(raw[:], addr)
		found = append(found, netip.PrefixFrom(netip.AddrFrom4(raw), bits).Masked())
	}
	return found
}

// routeAddr reads an address as the kernel prints it: hexadecimal, in the
// byte order of the machine, which is little-endian wherever Docker runs.
func routeAddr(word []byte) (uint32, bool) {
	var raw [4]byte
	if len(word) != 8 {
		return 0, false
	}
	if _, err := hex.Decode(raw[:], word); err != nil {
		return 0, false
	}
	return binary.LittleEndian.Uint32(raw[:]), true
}
