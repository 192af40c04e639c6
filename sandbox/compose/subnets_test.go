package compose

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/procid"
)

func prefixes(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func TestFreeSubnet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ranges := prefixes("10.213.0.0/24", "198.18.0.0/25")
		containers := rapid.IntRange(0, 300).Draw(t, "containers")
		used := []netip.Prefix{}
		for {
			p, err := freeSubnet(ranges, used, containers)
			if err != nil {
				if !errors.Is(err, errNoSubnet) {
					t.Fatal(err)
				}
				break
			}
			if !slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(p.Addr()) && p.Bits() >= r.Bits() }) {
				t.Fatalf("%s is in none of %v", p, ranges)
			}
			if slices.ContainsFunc(used, p.Overlaps) || p.Masked() != p {
				t.Fatalf("%s is used or odd: %v", p, used)
			}
			if room := 1<<(32-p.Bits()) - 3; room < containers {
				t.Fatalf("%s has room for %d, not %d", p, room, containers)
			}
			used = append(used, p)
		}
		want := map[bool]int{true: 12}[containers <= 29]
		if got := len(used); want > 0 && got != want {
			t.Fatalf("%d networks fit, want %d", got, want)
		}
	})
}

func TestSubnetsAvoidRoutes(t *testing.T) {
	t.Parallel()
	// 10.0.0.0/8 by a tunnel, the default route, a local network.
	table := "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
		"tun0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n" +
		"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
		"eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n" +
		"odd\tline\n"
	used := routes([]byte(table))
	if want := prefixes("10.0.0.0/8", "192.0.2.0/24"); !slices.Equal(used, want) {
		t.Fatalf("routes %v, want %v", used, want)
	}
	p, err := freeSubnet(defaultSubnets(), used, 2)
	if err != nil || !netip.MustParsePrefix("198.18.0.0/15").Contains(p.Addr()) {
		t.Errorf("got %s, %v", p, err)
	}
}

func TestParseSubnets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]netip.Prefix{
		"":                           defaultSubnets(),
		"10.1.2.3/16":                prefixes("10.1.0.0/16"),
		" 10.1.0.0/16, 10.2.0.0/27,": prefixes("10.1.0.0/16", "10.2.0.0/27"),
	} {
		if got, err := ParseSubnets(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{"x", "10.0.0.0", "10.0.0.0/28", "fd00::/8"} {
		if _, err := ParseSubnets(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func FuzzRoutes(f *testing.F) {
	f.Add([]byte("a 0000000A x x x x x 000000FF"))
	f.Fuzz(func(t *testing.T, table []byte) {
		for _, p := range routes(table) {
			if !p.IsValid() || p.Bits() == 0 && p.Addr().IsUnspecified() {
				t.Errorf("got %v", p)
			}
		}
	})
}

func TestClaims(t *testing.T) {
	t.Parallel()
	owner := procid.ID{BootID: "1-2-3", PID: 4, StartTicks: 5}
	claim := claimOf("p-main", owner)
	for _, text := range []string{claim, "localhost/" + claim} {
		if tag, got, ok := readClaim(text); !ok || tag != "p-main" || got != owner {
			t.Errorf("%q: got %q, %v, %v", text, tag, got, ok)
		}
	}
	for _, other := range []string{"debian:12", "proctor-build:abc", claimPrefix + "x", claimPrefix + "x:latest"} {
		if _, _, ok := readClaim(other); ok {
			t.Errorf("%q is a claim", other)
		}
	}
}
