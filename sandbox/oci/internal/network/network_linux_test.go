package network

import (
	"strings"
	"testing"
)

func TestResolverInside(t *testing.T) {
	t.Parallel()
	got := resolverInside("# x\nnameserver 127.0.0.53\nnameserver 192.0.2.1\noptions edns0  trust-ad\nsearch a.test b.test\nsortlist x\n")
	if want := "nameserver 10.0.2.3\noptions edns0 trust-ad\nsearch a.test b.test\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHostsElsewhere(t *testing.T) {
	t.Parallel()
	got := hostsElsewhere("127.0.0.1 localhost\n127.0.1.1\tme\n::1 ip6-localhost\nff02::1 all\n0.0.0.0 blocked\n\n# 192.0.2.9 x\n192.0.2.1  build build.test # ours\n2001:db8::1 six\nnonsense x\n")
	if want := "192.0.2.1\tbuild\tbuild.test\t#\tours\n2001:db8::1\tsix\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDefaultRoute6(t *testing.T) {
	t.Parallel()
	zero := strings.Repeat("0", 32)
	line := func(to, length, device string) string {
		return strings.Join([]string{to, length, zero, "00", zero, "00000400", "00000003", "00000000", "00000003", device}, " ") + "\n"
	}
	for table, want := range map[string]bool{
		"":                                  false,
		line(zero, "00", "eth0"):            true,
		line(zero, "00", "lo"):              false,
		line(zero, "08", "eth0"):            false,
		"nonsense\n":                        false,
		line("fd00"+zero[4:], "00", "eth0"): false,
	} {
		if got := defaultRoute6(table); got != want {
			t.Errorf("%q: got %v", table, got)
		}
	}
}
