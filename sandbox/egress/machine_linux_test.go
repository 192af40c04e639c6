package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
)

// inNetwork runs f on a thread in a network namespace of its own.
func inNetwork(t *testing.T, f func() error) {
	t.Helper()
	need.Root(t)
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// put adds a device with addresses.
func put(link netlink.Link, addrs ...string) error {
	if err := netlink.LinkAdd(link); err != nil {
		return fmt.Errorf("adding %s: %w", link.Attrs().Name, err)
	}
	for _, a := range addrs {
		addr, err := netlink.ParseAddr(a)
		if err != nil {
			return err
		}
		six := addr.IP.To4() == nil
		if six {
			addr.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(link, addr); err != nil && !six { // IPv6 may be switched off
			return fmt.Errorf("adding %s: %w", a, err)
		}
	}
	return netlink.LinkSetUp(link)
}

func route(link netlink.Link, to, via string) error {
	r := netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(via)}
	if to != "" {
		_, r.Dst, _ = net.ParseCIDR(to)
	}
	if err := netlink.RouteAdd(&r); err != nil {
		return fmt.Errorf("routing %s through %s: %w", to, via, err)
	}
	return nil
}

// machineLike makes devices as a machine with containers and a VPN has them.
func machineLike() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	attrs := func(name string) netlink.LinkAttrs { return netlink.LinkAttrs{Name: name} }
	uplink := &netlink.Veth{LinkAttrs: attrs("uplink"), PeerName: "world"}
	second := &netlink.Veth{LinkAttrs: attrs("second"), PeerName: "second-peer"}
	bridge := &netlink.Bridge{LinkAttrs: attrs("bridge")}
	vpn := &netlink.Tuntap{LinkAttrs: attrs("vpn"), Mode: netlink.TUNTAP_MODE_TUN}
	return errors.Join(
		netlink.LinkSetUp(lo),
		put(uplink, "198.51.100.2/24", "2001:db8:1::2/64"), put(bridge, "172.30.0.1/16", "fd99::1/64"), put(second, "10.9.0.1/24"), put(vpn, "10.66.0.2/32"),
		route(uplink, "", "198.51.100.1"), route(second, "10.10.0.0/16", "10.9.0.254"), route(vpn, "10.77.0.0/16", ""),
	)
}

// TestOwnNetworks: what is this machine's own is known from its routes as they are.
func TestOwnNetworks(t *testing.T) {
	t.Parallel()
	if _, err := netlink.LinkByName("lo"); err != nil {
		t.Skipf("the routes of this machine cannot be read: %v", err)
	}
	inNetwork(t, func() error {
		if err := machineLike(); err != nil {
			return err
		}
		up := Upstream{}
		six := atInterface(netip.MustParseAddr("fd99::1"))
		for addr, want := range map[string]bool{
			"198.51.100.2": true, "2001:db8:1::2": true, "172.30.0.1": true, "fd99::1": true, "10.9.0.1": true, "10.66.0.2": true, // its own
			"::ffff:172.30.0.1": true, "64:ff9b::172.30.0.1": true, "2002:ac1e:0001::1": true,
			"172.30.4.9": true, "172.30.255.255": true, "fd99::77": true, "10.9.0.7": true, // attached to it alone
			"198.51.100.9": false, "2001:db8:1::9": false, "10.10.0.9": false, "10.77.0.9": false, "203.0.113.5": false, // neighbours, and what is behind gateways
		} {
			if strings.Contains(addr, "::") && !strings.Contains(addr, ".") && !six {
				continue
			}
			if got := up.Refuses(netip.MustParseAddr(addr)); got != want {
				t.Errorf("%s: got %v, want %v", addr, got, want)
			}
			if (Upstream{Machine: true}).Refuses(netip.MustParseAddr(addr)) {
				t.Errorf("%s is refused with Machine", addr)
			}
		}
		// A network that comes later is seen.
		late := netip.MustParseAddr("172.31.0.9")
		before := up.Refuses(late)
		err := put(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "late"}}, "172.31.0.1/16")
		if after := up.Refuses(late); before || !after {
			t.Errorf("a network that comes: refused %v, then %v", before, after)
		}
		return err
	})
}
