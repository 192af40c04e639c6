package sandboxtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
)

// fetch is a web client of bash alone that asks the proxy it was told of.
const fetch = `fetch() {
	proxy=${http_proxy#http://}
	exec 3<>"/dev/tcp/${proxy%:*}/${proxy#*:}" || return 7
	printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3
	cat <&3
}
`

// netLog keeps the lines of an egress log.
type netLog struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *netLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Buffer.Write(p) // never fails
	return len(p), nil
}

func (l *netLog) lines(t testing.TB) []egress.Line {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []egress.Line
	for text := range strings.Lines(l.String()) {
		var line egress.Line
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Errorf("log line %q: %v", text, err)
		}
		all = append(all, line)
	}
	return all
}

// until waits until a line of the log says what is wanted.
func (l *netLog) until(t testing.TB, what string, ok func(egress.Line) bool) {
	t.Helper()
	over := time.After(limit)
	for {
		if slices.ContainsFunc(l.lines(t), ok) {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
			continue
		case <-over:
		}
		break
	}
	t.Errorf("the log has no line of %s: %+v", what, l.lines(t))
}

// listed makes a sandbox that may reach good.test, and a world in which that
// and others are.
func (s *suite) listed(t *testing.T, change func(*sandbox.Spec)) (sandbox.Sandbox, *netLog) {
	t.Helper()
	s.cfg.World.Serve(t, "good.test")
	s.cfg.World.Serve(t, "a.b.deep.test")
	s.cfg.World.Serve(t, "evil.test")
	s.cfg.World.Echo(t, "echo.test")
	s.cfg.World.ServeNames(t)
	log := &netLog{}
	spec := s.spec()
	spec.Network = sandbox.Network{Mode: sandbox.NetworkAllowlist, Hosts: []string{"good.test", "*.deep.test"}, Log: log}
	if change != nil {
		change(&spec)
	}
	return s.create(t, spec), log
}

func reaches(t testing.TB, sb sandbox.Sandbox, cmd sandbox.Command, host string) {
	t.Helper()
	cmd.Shell = fetch + "fetch http://" + host + "/"
	if got := exec(t, sb, cmd); !strings.HasPrefix(got.stdout, "HTTP/1.1 200 ") || !strings.HasSuffix(got.stdout, "hello from "+host+"\n") {
		t.Errorf("%s: code %d, output %q", host, got.Code, got.stdout)
	}
}

func isDenied(t testing.TB, sb sandbox.Sandbox, host string) {
	t.Helper()
	got := exec(t, sb, sh(fetch+"fetch http://"+host+"/"))
	if !strings.HasPrefix(got.stdout, "HTTP/1.1 403 ") || !strings.Contains(got.stdout, strconv.Quote(host)) || !strings.Contains(got.stdout, "allowed_hosts") {
		t.Errorf("%s: code %d, output %q; want a 403 that names the host and allowed_hosts", host, got.Code, got.stdout)
	}
}

// loopbackOnly checks that no packet can leave the sandbox.
func loopbackOnly(t testing.TB, sb sandbox.Sandbox) {
	t.Helper()
	if got := output(t, sb, sh(interfaces)); got != "" {
		t.Errorf("interfaces besides lo: %q", got)
	}
	for _, to := range []string{"192.0.2.1/80", fmt.Sprintf("127.0.0.1/%d", listenHost(t))} {
		script := "unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY; (echo >/dev/tcp/" + to + ") 2>/dev/null"
		if r := exec(t, sb, sh(script)); r.Code == 0 {
			t.Errorf("%s could be reached directly", to)
		}
	}
}

const interfaces = `tail -n +3 /proc/net/dev | while IFS=: read -r name _; do echo $name; done | grep -vx lo; :`

// killRelay ends what carries connections out, as an agent could that is root.
const killRelay = `kill -9 $(grep -lsa 'proctor-gues[t].relay' /proc/[0-9]*/cmdline | cut -d/ -f3)`

var egressObligations = []obligation{
	{"hosts that are listed are reached, others are denied and logged", processes | allowlist, func(t *testing.T, s *suite) {
		sb, log := s.listed(t, nil)
		reaches(t, sb, sandbox.Command{}, "good.test")
		reaches(t, sb, sandbox.Command{}, "a.b.deep.test")
		isDenied(t, sb, "evil.test")
		isDenied(t, sb, "deep.test")
		log.until(t, "good.test", func(l egress.Line) bool {
			return l.Host == "good.test" && l.Port == 80 && l.Allowed && l.BytesUp > 0 && l.BytesDown > 0 && !l.Time.IsZero()
		})
		log.until(t, "evil.test", func(l egress.Line) bool {
			return l.Host == "evil.test" && !l.Allowed && l.Reason == "not in allowed_hosts" && l.BytesDown == 0
		})
	}},
	{"who does not ask the proxy reaches nothing", processes | allowlist, func(t *testing.T, s *suite) {
		sb, _ := s.listed(t, nil)
		loopbackOnly(t, sb)
	}},
	{"the proxy's variables win, and NO_PROXY is added to", processes | allowlist, func(t *testing.T, s *suite) {
		sb, _ := s.listed(t, func(spec *sandbox.Spec) {
			spec.Env = append(spec.Env, "http_proxy=http://192.0.2.1:1", "NO_PROXY=internal")
		})
		cmd := sandbox.Command{Env: []string{"https_proxy=nonsense"}}
		reaches(t, sb, cmd, "good.test")
		cmd.Shell = `echo "$HTTP_PROXY $HTTPS_PROXY $ALL_PROXY $http_proxy $https_proxy $all_proxy"; echo "$NO_PROXY $no_proxy"`
		urls, none, _ := strings.Cut(output(t, sb, cmd), "\n")
		fields := strings.Fields(urls)
		if len(fields) != 6 || len(slices.Compact(fields)) != 1 || !strings.HasPrefix(fields[0], "http://127.0.0.1:") {
			t.Errorf("proxies %q", urls)
		}
		if want := "localhost,127.0.0.1,::1,internal"; none != want+" "+want {
			t.Errorf("NO_PROXY %q, want %q", none, want)
		}
	}},
	{"every user goes through the proxy", processes | allowlist | otherUser, func(t *testing.T, s *suite) {
		sb, _ := s.listed(t, nil)
		reaches(t, sb, sandbox.Command{User: s.cfg.User.Name}, "good.test")
	}},
	{"ending processes leaves the network alone", processes | allowlist, func(t *testing.T, s *suite) {
		sb, _ := s.listed(t, nil)
		m := mark(t, sb)
		exec(t, sb, tagged(s.tag(), daemonScript))
		killTree(t, sb, m)
		cmd := withGrace(sh("sleep 86400"), shortGrace)
		cmd.Timeout = 200 * time.Millisecond
		if st := exec(t, sb, cmd); !st.TimedOut {
			t.Errorf("got %+v", st)
		}
		reaches(t, sb, sandbox.Command{}, "good.test")
	}},
	{"who kills the relay cuts the network off, and that is logged", processes | allowlist, func(t *testing.T, s *suite) {
		sb, log := s.listed(t, nil)
		output(t, sb, sandbox.Command{Shell: killRelay, User: "0:0"})
		log.until(t, "the relay's end", func(l egress.Line) bool {
			return strings.Contains(l.Reason, "relay in the sandbox is gone") && !l.Allowed
		})
		if got := exec(t, sb, sh(fetch+"fetch http://good.test/ 2>/dev/null")); strings.Contains(got.stdout, "hello") {
			t.Errorf("got %q", got.stdout)
		}
		loopbackOnly(t, sb)
	}},
	{"Destroy ends connections under way", processes | allowlist, func(t *testing.T, s *suite) {
		sb, log := s.listed(t, nil)
		quiet := listenQuiet(t)
		s.cfg.World.Put("good.test", quiet.Addr().String())
		u := start(t, call(t), sb, sh(fetch+"echo ready; fetch http://good.test/"))
		u.untilReady(t)
		c, err := quiet.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if err := sb.Destroy(call(t)); err != nil {
			t.Errorf("Destroy: %v", err)
		}
		if n := len(log.lines(t)); n != 1 {
			t.Errorf("got %d lines after Destroy, want the one of the connection that it closed", n)
		}
	}},
}

// listenQuiet is a server that does not answer.
func listenQuiet(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

var switchObligations = []obligation{
	{"public, no-network, allowlist and public again", processes | switching, func(t *testing.T, s *suite) {
		sb, _ := s.listed(t, func(spec *sandbox.Spec) {
			spec.Network.Mode, spec.Network.Hosts, spec.Network.Switchable = sandbox.NetworkPublic, nil, true
		})
		isPublic(t, s, sb)
		switchTo(t, sb, sandbox.NetworkNone)
		isShut(t, s, sb)
		if got := exec(t, sb, sh(fetch+"fetch http://good.test/ 2>/dev/null")); strings.Contains(got.stdout, "hello") {
			t.Errorf("without network: got %q", got.stdout)
		}
		switchTo(t, sb, sandbox.NetworkAllowlist, "good.test")
		reaches(t, sb, sandbox.Command{}, "good.test")
		isDenied(t, sb, "evil.test")
		isShut(t, s, sb)
		switchTo(t, sb, sandbox.NetworkAllowlist, "evil.test")
		isDenied(t, sb, "good.test")
		switchTo(t, sb, sandbox.NetworkPublic)
		isPublic(t, s, sb)
	}},
	{"what begins without network can be given one", processes | switching, func(t *testing.T, s *suite) {
		sb, _ := s.listed(t, func(spec *sandbox.Spec) {
			spec.Network.Mode, spec.Network.Hosts, spec.Network.Switchable = sandbox.NetworkNone, nil, true
		})
		isShut(t, s, sb)
		switchTo(t, sb, sandbox.NetworkPublic)
		isPublic(t, s, sb)
		switchTo(t, sb, sandbox.NetworkNone)
		isShut(t, s, sb)
	}},
	{"a connection that is not allowed any more is closed", processes | switching, func(t *testing.T, s *suite) {
		sb, log := s.listed(t, func(spec *sandbox.Spec) { spec.Network.Switchable = true })
		quiet := listenQuiet(t)
		s.cfg.World.Put("good.test", quiet.Addr().String())
		u := start(t, call(t), sb, sh(fetch+"echo ready; fetch http://good.test/"))
		u.untilReady(t)
		c, err := quiet.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		switchTo(t, sb, sandbox.NetworkNone)
		u.wait(t)
		log.until(t, "the closed connection", func(l egress.Line) bool { return strings.Contains(l.Reason, "network policy changed") })
	}},
	{"switching starts a relay that was killed again", processes | switching, func(t *testing.T, s *suite) {
		sb, log := s.listed(t, func(spec *sandbox.Spec) { spec.Network.Switchable = true })
		output(t, sb, sandbox.Command{Shell: killRelay, User: "0:0"})
		log.until(t, "the relay's end", func(l egress.Line) bool { return strings.Contains(l.Reason, "relay in the sandbox is gone") })
		switchTo(t, sb, sandbox.NetworkAllowlist, "good.test")
		reaches(t, sb, sandbox.Command{}, "good.test")
	}},
	{"a sandbox that was not created for it refuses", switching, func(t *testing.T, s *suite) {
		sw, ok := sandbox.As[sandbox.NetworkSwitcher](s.fresh(t))
		if !ok {
			return
		}
		if err := sw.SetNetwork(call(t), sandbox.NetworkNone, nil); !errors.Is(err, sandbox.ErrUnsupported) {
			t.Errorf("got %v, want ErrUnsupported", err)
		}
	}},
}

func switchTo(t testing.TB, sb sandbox.Sandbox, mode sandbox.NetworkMode, hosts ...string) {
	t.Helper()
	sw, ok := sandbox.As[sandbox.NetworkSwitcher](sb)
	if !ok {
		t.Fatal("the sandbox is no NetworkSwitcher")
	}
	if err := sw.SetNetwork(call(t), mode, hosts); err != nil {
		t.Fatalf("SetNetwork(%s): %v", mode, err)
	}
}

// isShut checks that nothing outside is reached directly by a sandbox whose
// network can be switched. One with a network of its own keeps its device.
func isShut(t testing.TB, s *suite, sb sandbox.Sandbox) {
	t.Helper()
	if !s.cfg.Outside {
		loopbackOnly(t, sb)
		return
	}
	good := s.cfg.World.Address("good.test").String()
	for _, to := range []string{good + "/80", "good.test/80", "10.0.2.3/53", fmt.Sprintf("127.0.0.1/%d", listenHost(t))} {
		isUnreached(t, sb, to)
	}
	echo := s.cfg.World.Address("echo.test").String()
	if got := exec(t, sb, sh("exec 3<>/dev/udp/"+echo+"/7; printf ping >&3; timeout 1 head -c 4 <&3 2>/dev/null")); got.stdout != "" {
		t.Errorf("datagrams reach outside: %q", got.stdout)
	}
}

// isPublic checks that everything is reached: through a proxy, and directly where
// the sandbox has a network of its own, or else this machine at the address of
// its gateway.
func isPublic(t testing.TB, s *suite, sb sandbox.Sandbox) {
	t.Helper()
	if s.cfg.Outside {
		reachesDirectly(t, sb, s.cfg.World.Address("evil.test").String(), "evil.test")
		reachesDirectly(t, sb, "good.test", "good.test")
		echo := s.cfg.World.Address("echo.test").String()
		if got := exec(t, sb, sh("exec 3<>/dev/udp/"+echo+"/7; printf ping >&3; timeout 20 head -c 4 <&3")); got.stdout != "ping" {
			t.Errorf("datagrams: got %q", got.stdout)
		}
	}
	if output(t, sb, sh(`echo "$http_proxy"`)) != "" {
		reaches(t, sb, sandbox.Command{}, "good.test")
		reaches(t, sb, sandbox.Command{}, "evil.test")
		return
	}
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	script := `while read -r _ to via _; do [ "$to" != 00000000 ] || g=$via; done </proc/net/route
		echo >"/dev/tcp/$((16#${g:6:2})).$((16#${g:4:2})).$((16#${g:2:2})).$((16#${g:0:2}))/` + port + `"`
	output(t, sb, sh(script))
}
