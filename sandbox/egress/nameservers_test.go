package egress

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestServers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "[127.0.0.1:53]",
		"# nameserver 192.0.2.9\nsearch a.test\nnameserver 192.0.2.1\nnameserver\tfe80::1%eth0 x\n": "[192.0.2.1:53 [fe80::1%eth0]:53]",
		"nameserver nonsense\nnameserver 127.0.0.53\noptions edns0\n":                               "[127.0.0.53:53]",
		"nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n":  "[192.0.2.1:53 192.0.2.2:53 192.0.2.3:53]",
	} {
		if got := fmt.Sprint(parseServers(strings.NewReader(text))); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	mine := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:5353")}
	if got := (Upstream{NameServers: func() []netip.AddrPort { return mine }}).Servers(); len(got) != 1 || got[0] != mine[0] {
		t.Errorf("got %v", got)
	}
}
