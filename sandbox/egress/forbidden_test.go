package egress

import (
	"context"
	"net/netip"
	"strings"
	"testing"
)

func TestForbiddenAddresses(t *testing.T) {
	t.Parallel()
	up := Upstream{Own: nowhere}
	for addr, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true, "169.254.169.254": true, "fe80::1": true, "0.0.0.0": true, "0.1.2.3": true,
		"::": true, "224.0.0.1": true, "ff02::1": true, "255.255.255.255": true,
		"10.0.0.1": false, "192.168.1.1": false, "93.184.216.34": false, "2001:db8::1": false,
		// What clouds tell their machines.
		"fd00:ec2::254": true, "fd00:ec2::23": true, "fd00:ec3::254": false, "fd20:ce::254": true, "fd20:ce::253": false, "fd00:42::42": true,
		"100.100.100.200": true, "100.100.100.201": false, "168.63.129.16": true, "168.63.129.17": false, "192.0.0.192": true, "192.0.0.1": true, "192.0.1.1": false,
		// An IPv4 address inside.
		"::ffff:100.100.100.200": true, "::ffff:192.0.0.192": true, "::ffff:1.1.1.1": false,
		"64:ff9b::169.254.169.254": true, "64:ff9b::127.0.0.1": true, "64:ff9b::168.63.129.16": true, "64:ff9b::1.1.1.1": false, "64:ff9b:1::169.254.169.254": true,
		"2002:a9fe:a9fe::1": true, "2002:6464:64c8::": true, "2002:0101:0101::1": false,
		"::169.254.169.254": true, "::168.63.129.16": true, "::1.1.1.1": false, "::ffff:0:127.0.0.1": true,
		"fd00:ec2::254%eth0": true,
	} {
		if got := up.Refuses(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: got %v, want %v", addr, got, want)
		}
	}
	if !up.Refuses(netip.Addr{}) {
		t.Error("no address at all passes")
	}
}

// TestOwnAddressesInside: an address of this machine is one also inside of another,
// and Machine lets it be reached, but not the metadata.
func TestOwnAddressesInside(t *testing.T) {
	t.Parallel()
	own := netip.MustParseAddr("203.0.113.9")
	up := Upstream{Own: func(a netip.Addr) bool { return a == own }}
	for addr, want := range map[string]bool{
		"203.0.113.9": true, "::ffff:203.0.113.9": true, "64:ff9b::203.0.113.9": true, "2002:cb00:7109::1": true, "203.0.113.8": false,
	} {
		if got := up.Refuses(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: got %v, want %v", addr, got, want)
		}
	}
	up.Machine = true
	for addr, want := range map[string]bool{"203.0.113.9": false, "100.100.100.200": true, "127.0.0.1": true} {
		if got := up.Refuses(netip.MustParseAddr(addr)); got != want {
			t.Errorf("with Machine, %s: got %v, want %v", addr, got, want)
		}
	}
}

// TestMetadataIsNotReached: neither as an address that is listed, nor by a name that
// is, nor where everything is allowed.
func TestMetadataIsNotReached(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "64:ff9b::a9fe:a9fe", "203.0.113.9"} {
		w := newWorld()
		w.put("good.test", echo(t))
		w.names["rebinding.test"] = netip.MustParseAddr(addr)
		w.addrs[netip.MustParseAddr(addr)] = w.addrs[w.names["good.test"]] // would it be dialled
		up := w.upstream()
		up.Own = func(a netip.Addr) bool { return a == netip.MustParseAddr("203.0.113.9") }
		for _, policy := range []Policy{allow("rebinding.test", addr), {}} {
			s := serve(t, policy, up)
			for _, host := range []string{"rebinding.test", netip.AddrPortFrom(netip.MustParseAddr(addr), 1).String()} {
				host = strings.TrimSuffix(host, ":1")
				if _, code := s.connect(t, host+":80"); code != 403 {
					t.Errorf("%s: got %d", host, code)
				}
			}
			for _, l := range s.lines(t) {
				if l.Allowed || !strings.Contains(l.Reason, "no sandbox reaches") {
					t.Errorf("%s: got %+v", addr, l)
				}
			}
		}
	}
}

// TestOwnAddressesOfThisMachine looks at what this machine has.
func TestOwnAddressesOfThisMachine(t *testing.T) {
	t.Parallel()
	c, err := Upstream{Local: true}.Connect(context.Background(), "udp", netip.MustParseAddrPort("127.0.0.1:9"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	own := netip.MustParseAddrPort(c.LocalAddr().String()).Addr()
	if !(Upstream{}).owns(own) {
		t.Errorf("%s is not seen to be this machine's", own)
	}
}
