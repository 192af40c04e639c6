package oci

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// needTUN skips unless sandboxes can have a network of their own.
func needTUN(t testing.TB) {
	t.Helper()
	err := network.Try(tunPath)
	need.That(t, "tun", err == nil || os.Geteuid() != 0, fmt.Sprintf("needs %s: %v", tunPath, err))
	if err != nil {
		t.Skipf("needs %s: %v", tunPath, err)
	}
}

// TestPublicNetwork: a public sandbox sees nothing of the host's loopback and
// reaches none of its abstract sockets, also with raw sockets.
func TestPublicNetwork(t *testing.T) {
	t.Parallel()
	for _, name := range runtimeNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			needTUN(t)
			opts := testOptions(t, name)
			world := &sandboxtest.World{}
			opts.Egress = world.Upstream()
			program := filepath.Join("/probe", probeArg0)
			s := create(t, newBackend(t, opts), sandbox.Spec{Mounts: []sandbox.Mount{{Source: staticProgram(t), Target: program, ReadOnly: true}}})
			if got := say(t, s, "cat /etc/resolv.conf"); !strings.Contains(got, "nameserver 10.0.2.3\n") || strings.Count(got, "nameserver") != 1 {
				t.Errorf("resolv.conf: %q", got)
			}
			netDevices(t, s)
			abstract := "proctor-test-" + filepath.Base(opts.StateDir)
			l, err := net.Listen("unix", "@"+abstract)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			if got, err := tell(t, s, program, "abstract", abstract); err != nil || !strings.Contains(got, "failed:") {
				t.Errorf("an abstract socket of the host is reached: %q, %v", got, err)
			}
			noTraffic(t, s, program)
			// The device is the only way out, and leads nowhere else.
			host := listenLoopback(t)
			if got, err := tell(t, s, program, "bound", "eth0", host.Addr().String()); err != nil || !strings.Contains(got, "failed:") {
				t.Errorf("the host's loopback is reached through the device: %q, %v", got, err)
			}
		})
	}
}

// netDevices: a sandbox finds its network devices where programs look for them.
func netDevices(t *testing.T, s sandbox.Sandbox) {
	t.Helper()
	const list = `cd /sys/class/net; for d in *; do for f in address addr_len type operstate; do echo $d/$f $(cat $d/$f); done; done
cat lo/mtu; touch x lo/x 2>/dev/null; echo 0 2>/dev/null >lo/mtu || echo protected; ls`
	const want = `eth0/address
eth0/addr_len 0
eth0/type 65534
eth0/operstate unknown
lo/address 00:00:00:00:00:00
lo/addr_len 6
lo/type 772
lo/operstate unknown
65536
protected
eth0
lo
`
	if got := say(t, s, list); got != want {
		t.Errorf("devices:\n%s\nwant\n%s", got, want)
	}
}

func listenLoopback(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestOwnAddresses: a service on all addresses of this machine is not reached from
// a public sandbox, and with Machine it is.
func TestOwnAddresses(t *testing.T) {
	t.Parallel()
	own := interfaceAddress(t)
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "word-of-the-machine\n")
			_ = c.Close()
		}
	}()
	at := fmt.Sprintf("/dev/tcp/%s/%d", own, l.Addr().(*net.TCPAddr).Port)
	for _, name := range runtimeNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			needTUN(t)
			for _, reached := range []bool{false, true} {
				opts := testOptions(t, name)
				opts.Egress.Machine = reached
				s := create(t, newBackend(t, opts), sandbox.Spec{})
				got, err := tell(t, s, "/bin/bash", "-c", "(cat <"+at+") 2>/dev/null || echo refused")
				if want := map[bool]string{false: "refused\n", true: "word-of-the-machine\n"}[reached]; err != nil || got != want {
					t.Errorf("Machine %v: got %q, %v", reached, got, err)
				}
			}
		})
	}
}

// interfaceAddress is an address of this machine that is not its loopback's.
func interfaceAddress(t testing.TB) netip.Addr {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		if own, ok := netip.AddrFromSlice(n.IP.To4()); ok && own.IsGlobalUnicast() {
			return own
		}
	}
	t.Skip("this machine has no address but its loopback's")
	return netip.Addr{}
}

// noTraffic sends a secret over the host's loopback while the sandbox listens,
// and after it the sandbox a word over its own.
func noTraffic(t *testing.T, s sandbox.Sandbox, program string) {
	t.Helper()
	const secret, last = "key-of-the-host", "word-of-the-sandbox"
	out := &signalled{ready: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		_, err := s.Exec(t.Context(), sandbox.Command{Argv: []string{program, "packets", secret, last}, Stdout: out})
		done <- err
	}()
	select {
	case <-out.ready:
	case err := <-done:
		if !strings.Contains(out.String(), "failed: socket") { // a kernel without packet sockets shows nothing
			t.Errorf("no packet socket: %q, %v", out.String(), err)
		}
		return
	}
	l := listenLoopback(t)
	go func() {
		if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
			_, _ = c.Write([]byte(secret))
			_ = c.Close()
		}
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || !bytes.Contains(got, []byte(secret)) {
		t.Errorf("got %q, %v", got, err)
	}
	say(t, s, "echo "+last+" >/dev/udp/127.0.0.1/9")
	if err := <-done; err != nil || strings.Contains(out.String(), "seen") || strings.Contains(out.String(), "failed") {
		t.Errorf("the host's traffic is seen: %q, %v", out.String(), err)
	}
}

// signalled closes ready with the first output.
type signalled struct {
	mu sync.Mutex
	bytes.Buffer
	ready chan struct{}
}

func (s *signalled) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(string(p), "listening") {
		close(s.ready)
	}
	return s.Buffer.Write(p)
}

func (s *signalled) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.String()
}

// tell runs a program and returns what it says.
func tell(t testing.TB, s sandbox.Sandbox, argv ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	_, err := s.Exec(t.Context(), sandbox.Command{Argv: argv, Stdout: &out})
	return out.String(), err
}

// TestSharedNetwork: where the setting says so a public sandbox has the host's
// network, which is said, and no raw sockets. A hardened one is refused.
func TestSharedNetwork(t *testing.T) {
	t.Parallel()
	for _, name := range runtimeNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			opts := testOptions(t, name)
			opts.ShareHost = true
			b := newBackend(t, opts)
			var warned []string
			s := create(t, b, sandbox.Spec{Warn: func(m string) { warned = append(warned, m) }})
			if len(warned) != 1 || !strings.Contains(warned[0], "network=host") {
				t.Errorf("warnings: %q", warned)
			}
			const netRaw = 1 << unix.CAP_NET_RAW
			var caps uint64
			if _, err := fmt.Sscanf(say(t, s, "grep CapBnd /proc/self/status | cut -f2"), "%x", &caps); err != nil || caps&netRaw != 0 {
				t.Errorf("capabilities %x, %v", caps, err)
			}
			if got := say(t, s, "cat /etc/resolv.conf"); got != hostfile.Small("/etc/resolv.conf") {
				t.Errorf("resolv.conf: %q", got)
			}
			if _, err := b.Create(t.Context(), sandbox.Spec{Hardened: true, Network: sandbox.Network{Mode: sandbox.NetworkPublic}}); !errors.Is(err, sandbox.ErrUnsupported) {
				t.Errorf("a hardened one: %v", err)
			}
		})
	}
}

// askProxy is a web client of bash alone that asks the proxy.
const askProxy = `p=${HTTP_PROXY#http://}; exec 3<>"/dev/tcp/${p%:*}/${p#*:}"; printf 'GET http://good.test/ HTTP/1.0\r\n\r\n' >&3; cat <&3`

// TestProxiedNetwork: without a TUN device a public sandbox reaches others through
// the proxy and nothing else, which is said.
func TestProxiedNetwork(t *testing.T) {
	t.Parallel()
	for _, name := range runtimeNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			world := &sandboxtest.World{}
			world.Serve(t, "good.test")
			opts := testOptions(t, name)
			opts.Egress = world.Upstream()
			b := newBackend(t, opts)
			b.noTUN = errors.New("no device")
			var warned []string
			program := filepath.Join("/probe", probeArg0)
			s := create(t, b, sandbox.Spec{
				Warn:   func(m string) { warned = append(warned, m) },
				Mounts: []sandbox.Mount{{Source: staticProgram(t), Target: program, ReadOnly: true}},
			})
			if len(warned) != 1 || !strings.Contains(warned[0], "no device") || !strings.Contains(warned[0], "HTTP_PROXY") || !strings.Contains(warned[0], "--ek network=host") {
				t.Errorf("warnings: %q", warned)
			}
			if got := say(t, s, askProxy); !strings.HasSuffix(got, "hello from good.test\n") {
				t.Errorf("through the proxy: %q", got)
			}
			if got, err := tell(t, s, "/bin/bash", "-c", "(echo >/dev/tcp/"+world.Address("good.test").String()+"/80) 2>/dev/null || echo refused"); err != nil || got != "refused\n" {
				t.Errorf("without the proxy: %q, %v", got, err)
			}
			host := listenLoopback(t)
			if got, err := tell(t, s, "/bin/bash", "-c", fmt.Sprintf("(echo >/dev/tcp/127.0.0.1/%d) 2>/dev/null || echo refused", host.Addr().(*net.TCPAddr).Port)); err != nil || got != "refused\n" {
				t.Errorf("the host's loopback: %q, %v", got, err)
			}
			abstract := "proctor-test-" + filepath.Base(opts.StateDir)
			l, err := net.Listen("unix", "@"+abstract)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			if got, err := tell(t, s, program, "abstract", abstract); err != nil || !strings.Contains(got, "failed:") {
				t.Errorf("an abstract socket of the host is reached: %q, %v", got, err)
			}
			if err := s.(sandbox.NetworkSwitcher).SetNetwork(t.Context(), sandbox.NetworkNone, nil); !errors.Is(err, sandbox.ErrUnsupported) {
				t.Errorf("switching: %v", err)
			}
		})
	}
}

// TestNetworksLeaveNothing makes and destroys sandboxes that hold connections.
func TestNetworksLeaveNothing(t *testing.T) { //nolint:paralleltest // it counts what the process has
	needRuntime(t, RuntimeRunc)
	needTUN(t)
	world := &sandboxtest.World{}
	opts := testOptions(t, RuntimeRunc)
	opts.Egress = world.Upstream()
	b := newBackend(t, opts)
	quiet := listenLoopback(t)
	world.Put("quiet.test", quiet.Addr().String())
	go func() {
		var held []net.Conn // until the sandbox ends them
		for {
			c, err := quiet.Accept()
			if err != nil {
				break
			}
			held = append(held, c)
		}
		for _, c := range held {
			_ = c.Close()
		}
	}()
	life := func() {
		s, err := b.Create(t.Context(), sandbox.Spec{Name: "leaves"})
		if err != nil {
			t.Fatal(err)
		}
		at := world.Address("quiet.test").String()
		say(t, s, "for i in 1 2 3 4; do exec {fd}<>/dev/tcp/"+at+"/80; done; exec 3<>/dev/udp/"+at+"/9; echo x >&3; (sleep 1000 &) >/dev/null 2>&1")
		if err := s.Destroy(cleanupContext(t)); err != nil {
			t.Fatal(err)
		}
	}
	life()
	routines, files := runtime.NumGoroutine(), len(openFiles(t))
	for range 5 {
		life()
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if runtime.NumGoroutine() <= routines+2 && len(openFiles(t)) <= files+5*4 { // the test's own ends
			break
		}
	}
	if n := runtime.NumGoroutine(); n > routines+2 {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", n, routines, buf[:runtime.Stack(buf, true)])
	}
	if n := len(openFiles(t)); n > files+5*4 {
		t.Errorf("%d files, %d before", n, files)
	}
}
