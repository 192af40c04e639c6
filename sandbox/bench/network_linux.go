package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox"
)

// The network between this machine and the server's, of a range for benchmarks
// (RFC 2544). The server is behind it, as servers elsewhere are: sandboxes do not reach
// what is attached to this machine alone.
const (
	hostAddress    = "198.18.254.1"
	gatewayAddress = "198.18.254.2"
	linkPrefix     = "/30"
	serverAddress  = "198.18.253.1"
	serverPrefix   = "/32"
	// linkName is of this machine's end of the cable; the other end is its peer.
	linkName = "proctorbench0"
	peerName = "proctorbench1"
)

// server sends networkMiB to whoever connects. It listens in a network namespace
// of its own, which is connected with this machine's by a virtual cable, so that
// no sandbox reaches it over a loopback interface.
type server struct {
	listener net.Listener
	link     netlink.Link
	serving  sync.WaitGroup
}

// serve starts the server. The error says why there is none.
func serve(ctx context.Context) (*server, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root can make a network namespace to measure from")
	}
	type result struct {
		s   *server
		err error
	}
	made := make(chan result)
	go func() { // on a thread that ends with it, because of its namespace
		runtime.LockOSThread()
		s, err := newServer(ctx)
		made <- result{s, err}
	}()
	r := <-made
	return r.s, r.err
}

// newServer makes the namespace, which is the calling thread's until it ends and
// the listener's as long as it is open.
func newServer(ctx context.Context) (_ *server, err error) {
	host, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("opening this machine's network namespace: %w", err)
	}
	defer func() { _ = host.Close() }()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("making a network namespace: %w", err)
	}
	// The cable is made inside, and one end is handed out: so both vanish with
	// the namespace whatever happens.
	attrs := netlink.NewLinkAttrs()
	attrs.Name = peerName
	if err := netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: attrs, PeerName: linkName, PeerNamespace: netlink.NsFd(int(host.Fd())),
	}); err != nil {
		return nil, fmt.Errorf("making a virtual cable: %w", err)
	}
	peer, err := up(peerName, gatewayAddress+linkPrefix)
	if err != nil {
		return nil, err
	}
	if _, err := up("lo", serverAddress+serverPrefix); err != nil {
		return nil, err
	}
	gateway := net.ParseIP(hostAddress)
	// Containers have addresses behind this machine's.
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: peer.Attrs().Index, Gw: gateway}); err != nil {
		return nil, fmt.Errorf("making a route: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(serverAddress, "0"))
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	defer func() {
		if err != nil {
			_ = listener.Close()
		}
	}()
	if err := unix.Setns(int(host.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("returning to this machine's network: %w", err)
	}
	link, err := up(linkName, hostAddress+linkPrefix)
	if err != nil {
		return nil, err
	}
	if err := routeToServer(link); err != nil {
		return nil, err
	}
	s := &server{listener: listener, link: link}
	s.serving.Go(s.accept)
	return s, nil
}

// routeToServer is this machine's way to the server. It goes with the interface.
func routeToServer(link netlink.Link) error {
	to, err := netlink.ParseIPNet(serverAddress + serverPrefix)
	if err != nil {
		return fmt.Errorf("address %s: %w", serverAddress, err)
	}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: to, Gw: net.ParseIP(gatewayAddress)}); err != nil {
		return fmt.Errorf("making a route to the server: %w", err)
	}
	return nil
}

// up gives an interface an address and switches it on.
func up(name, address string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("finding the interface %s: %w", name, err)
	}
	parsed, err := netlink.ParseAddr(address)
	if err != nil {
		return nil, fmt.Errorf("address %s: %w", address, err)
	}
	if err := netlink.AddrAdd(link, parsed); err != nil {
		return nil, fmt.Errorf("giving %s the address %s: %w", name, address, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return nil, fmt.Errorf("switching %s on: %w", name, err)
	}
	return link, nil
}

func (s *server) accept() {
	chunk := make([]byte, mebibyte)
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		s.serving.Go(func() {
			defer func() { _ = conn.Close() }()
			for range networkMiB {
				if _, err := conn.Write(chunk); err != nil {
					return
				}
			}
		})
	}
}

func (s *server) close() {
	_ = s.listener.Close()
	_ = netlink.LinkDel(s.link) // it goes with its namespace too
	s.serving.Wait()
}

// fetch is what downloads: the same on this machine and in sandboxes.
func (s *server) fetch() []string {
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	script := fmt.Sprintf(`exec 3<>/dev/tcp/%s/%s && test "$(head -c %d <&3 | wc -c)" -eq %d`,
		serverAddress, port, networkMiB*mebibyte, networkMiB*mebibyte)
	return []string{"bash", "-c", script}
}

// network measures a download in a sandbox with a public network.
func (t *turn) network(ctx context.Context) (err error) {
	if t.net == nil {
		return fmt.Errorf("%w: %s", errUnable, t.noNet)
	}
	spec := t.spec(t.subject)
	spec.Network.Mode = sandbox.NetworkPublic // hardened sandboxes have none by themselves
	sb, err := t.subject.Backend.Create(ctx, spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, destroy(ctx, sb)) }()
	began := t.Now()
	if err := command(ctx, sb, sandbox.Command{Argv: t.net.fetch()}); err != nil {
		return err
	}
	t.add(opNetwork, networkMiB*mebibyte/1e6/t.since(began))
	return nil
}

// hostNetwork is the same download without any sandbox, in MB/s; 0 where it
// cannot be measured.
func (r *run) hostNetwork(ctx context.Context) float64 {
	if r.net == nil {
		return 0
	}
	argv := r.net.fetch()
	began := r.Now()
	if err := exec.CommandContext(ctx, argv[0], argv[1:]...).Run(); err != nil {
		return 0
	}
	return networkMiB * mebibyte / 1e6 / r.since(began)
}
