package usernet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

// Outside is where connections of a sandbox lead. Its functions are called
// concurrently.
type Outside struct {
	// Dial connects a stream ("tcp") or datagrams ("udp") to an address that is
	// not refused, or to a name server.
	Dial func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error)
	// Refuse reports whether an address is not reached. Dial is not asked then.
	Refuse func(netip.Addr) bool
	// NameServers are asked for what the sandbox wants to know of names, in
	// order.
	NameServers func() []netip.AddrPort
}

// Net is the network of one sandbox as seen from outside. Its methods may be
// called concurrently.
type Net struct {
	outside Outside
	stack   *stack.Stack
	link    *link

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // none is added once closed

	mu      sync.Mutex // guards the rest
	closed  bool
	streams int
	flows   int
	open    context.Context // that all connections to outside live in; nil when there are none
	end     context.CancelCauseFunc
}

// nic is the one interface of the stack.
const nic tcpip.NICID = 1

var (
	errClosed = errors.New("the sandbox is being destroyed")
	errShut   = errors.New("the network policy changed")
)

// New makes the network on a device, which it closes. It begins at once; open is
// as SetOpen says it.
func New(dev Device, outside Outside, open bool) (*Net, error) {
	n := &Net{outside: outside, link: &link{dev: dev}}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.SetOpen(open)
	n.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6},
	})
	if err := n.configure(); err != nil {
		n.Close()
		return nil, fmt.Errorf("setting up the sandbox's network: %s", err)
	}
	return n, nil
}

func (n *Net) configure() tcpip.Error {
	if err := n.setBuffers(); err != nil {
		return err
	}
	n.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(n.stack, streamBuffer, maxOpening, n.openStream).HandlePacket)
	n.stack.SetTransportProtocolHandler(udp.ProtocolNumber, udp.NewForwarder(n.stack, n.openFlow).HandlePacket)
	n.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}, {Destination: header.IPv6EmptySubnet, NIC: nic}})
	if err := n.stack.CreateNICWithOptions(nic, n.link, stack.NICOptions{Disabled: true}); err != nil {
		return err
	}
	// Every address is taken for the stack's own: those outside are reached
	// through it.
	if err := n.stack.SetPromiscuousMode(nic, true); err != nil {
		return err
	}
	if err := n.stack.SetSpoofing(nic, true); err != nil {
		return err
	}
	// These answer echo requests too; addresses outside do not.
	for _, addr := range []netip.Addr{gateway4, gateway6, resolver4, resolver6} {
		if err := n.stack.AddProtocolAddress(nic, protocolAddress(addr), stack.AddressProperties{}); err != nil {
			return err
		}
	}
	return n.stack.EnableNIC(nic)
}

func protocolAddress(addr netip.Addr) tcpip.ProtocolAddress {
	p := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddrFromSlice(addr.AsSlice()).WithPrefix()}
	if addr.Is6() {
		p.Protocol = ipv6.ProtocolNumber
	}
	return p
}

// SetOpen says whether anything outside is reached that Outside does not refuse,
// the name server included. Connections end when it is not any more.
func (n *Net) SetOpen(open bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case open && n.open == nil:
		n.open, n.end = context.WithCancelCause(n.ctx)
	case !open && n.open != nil:
		n.end(errShut)
		n.open = nil
	}
}

// Close ends all connections and waits until nothing of the network is left.
func (n *Net) Close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.cancel(errClosed)
	n.work.Wait()
	n.link.shut()
	n.stack.Destroy()
}

// begin counts work that Close waits for, and returns the context that it lives
// in. It fails when nothing outside is reached. count is one of Net's, which
// grows up to most.
func (n *Net) begin(count *int, most int) (ctx context.Context, place int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.open == nil || *count >= most {
		return nil, 0, false
	}
	n.work.Add(1)
	*count++
	return n.open, *count, true
}

// done is the end of what began.
func (n *Net) done(count *int) {
	n.mu.Lock()
	*count--
	n.mu.Unlock()
	n.work.Done()
}

// isResolver reports whether the sandbox asks its name server.
func isResolver(to netip.AddrPort) bool {
	return to.Port() == dnsPort && (to.Addr() == resolver4 || to.Addr() == resolver6)
}

// refused reports whether an address leads nowhere.
func (n *Net) refused(addr netip.Addr) bool {
	return network4.Contains(addr) && (addr == network4.Addr() || addr == gateway4 || addr == resolver4) ||
		network6.Contains(addr) || n.outside.Refuse(addr)
}

// addrOf converts an address of the stack; the IPv4 address in an IPv6 one is
// what counts.
func addrOf(a tcpip.Address) netip.Addr {
	addr, _ := netip.AddrFromSlice(a.AsSlice())
	return addr.Unmap()
}
