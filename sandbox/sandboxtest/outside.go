package sandboxtest

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// direct is a web client of bash alone that asks no proxy.
const direct = `direct() {
	exec 3<>"/dev/tcp/$1/80" || return 7
	printf 'GET / HTTP/1.0\r\n\r\n' >&3
	cat <&3
}
`

// reachesDirectly checks that a server of the World is reached at a name or an
// address.
func reachesDirectly(t testing.TB, sb sandbox.Sandbox, at, name string) {
	t.Helper()
	got := exec(t, sb, sh(direct+"direct "+at))
	if !strings.HasSuffix(got.stdout, "hello from "+name+"\n") {
		t.Errorf("%s at %s: code %d, output %q", name, at, got.Code, got.stdout)
	}
}

// public makes a sandbox and a world in which good.test is.
func (s *suite) public(t *testing.T) sandbox.Sandbox {
	t.Helper()
	s.cfg.World.ServeNames(t)
	s.cfg.World.Serve(t, "good.test")
	spec := s.spec()
	spec.Network = sandbox.Network{Mode: sandbox.NetworkPublic}
	return s.create(t, spec)
}

var outsideObligations = []obligation{
	{"a public sandbox reaches servers by address and by name", processes | outside, func(t *testing.T, s *suite) {
		sb := s.public(t)
		reachesDirectly(t, sb, s.cfg.World.Address("good.test").String(), "good.test")
		reachesDirectly(t, sb, "good.test", "good.test")
		if got := exec(t, sb, sh(direct+"direct nobody.test")); got.Code == 0 {
			t.Errorf("a name that does not exist: output %q", got.stdout)
		}
		s.cfg.World.Echo(t, "echo.test")
		if got := output(t, sb, sh(`exec 3<>/dev/udp/echo.test/7; printf ping >&3; timeout 20 head -c 4 <&3`)); got != "ping" {
			t.Errorf("datagrams: got %q", got)
		}
	}},
	{"a public sandbox has a loopback and one device of its own", processes | outside, func(t *testing.T, s *suite) {
		sb := s.public(t)
		if got := strings.Fields(output(t, sb, sh(interfaces))); len(got) != 1 {
			t.Errorf("interfaces besides lo: %q", got)
		}
	}},
	{"a public sandbox does not reach the host's loopback, its own addresses, its links, nor what its cloud tells it", processes | outside, func(t *testing.T, s *suite) {
		sb := s.public(t)
		var visits atomic.Int64
		for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
			port := watch(t, at, &visits)
			for _, to := range []string{"127.0.0.1", "127.0.0.2", "0.0.0.0", "localhost", "::1", "::", "::ffff:127.0.0.1"} {
				isUnreached(t, sb, fmt.Sprintf("%s/%d", to, port))
			}
		}
		// Would these addresses be dialled, they would lead to a server.
		port := watch(t, "127.0.0.1:0", &visits)
		for _, to := range []string{
			"169.254.169.254", "169.254.0.1", "224.0.0.1", "255.255.255.255", "fe80::1", "ff02::1", "::ffff:169.254.169.254",
			"100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1",
		} {
			s.cfg.World.PutAddr(netip.MustParseAddr(to).Unmap(), fmt.Sprintf("127.0.0.1:%d", port))
			isUnreached(t, sb, to+"/80")
		}
		own := netip.MustParseAddr("198.18.255.9")
		s.cfg.World.PutOwn(own, fmt.Sprintf("127.0.0.1:%d", port))
		isUnreached(t, sb, own.String()+"/80")
		if n := visits.Load(); n != 0 {
			t.Errorf("%d connections came to servers of the host", n)
		}
		reachesDirectly(t, sb, "good.test", "good.test")
	}},
}

func isUnreached(t testing.TB, sb sandbox.Sandbox, to string) {
	t.Helper()
	if r := exec(t, sb, sh("(echo >/dev/tcp/"+to+") 2>/dev/null")); r.Code == 0 {
		t.Errorf("%s could be reached", to)
	}
}

// watch counts the connections that come to a listener on the host, and returns
// its port. Where there is no such address none comes.
func watch(t testing.TB, at string, visits *atomic.Int64) int {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		return 1
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			visits.Add(1)
			_ = c.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}
