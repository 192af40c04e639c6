package usernet

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// maxFlows is how many pairs of UDP ports are served at a time. A pair ends
	// when nothing was sent for flowIdle.
	maxFlows = 512
	flowIdle = time.Minute
	// maxDatagram is the largest that UDP can say.
	maxDatagram = 1<<16 - 1
	// flowBuffer is what the stack holds of datagrams that are not sent yet.
	flowBuffer = 2 * maxDatagram
)

// openFlow serves the pair of ports that a datagram of the sandbox is the first
// of. It reports whether anybody does: if not the sandbox is told that the
// port is unreachable.
func (n *Net) openFlow(r *udp.ForwarderRequest) bool {
	id := r.ID()
	to := netip.AddrPortFrom(addrOf(id.LocalAddress), id.LocalPort)
	if !isResolver(to) && n.refused(to.Addr()) {
		return false
	}
	ctx, _, ok := n.begin(&n.flows, maxFlows)
	if !ok {
		return false
	}
	f := &flow{}
	var terr tcpip.Error
	if f.ep, terr = r.CreateEndpoint(&f.queue); terr != nil {
		n.done(&n.flows)
		return false
	}
	f.ep.SocketOptions().SetReceiveBufferSize(flowBuffer, false)
	go func() { // joined by Close
		defer n.done(&n.flows)
		defer f.ep.Close()
		if isResolver(to) {
			n.resolve(ctx, f)
			return
		}
		dial, cancel := context.WithTimeout(ctx, dialLimit)
		up, err := n.outside.Dial(dial, "udp", to)
		cancel()
		if err == nil {
			f.carry(ctx, up)
		}
	}()
	return true
}

// flow is a pair of UDP ports, one of them the sandbox's.
type flow struct {
	ep    tcpip.Endpoint
	queue waiter.Queue
}

// carry copies datagrams both ways until none comes any more or ctx ends.
func (f *flow) carry(ctx context.Context, up net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(flowIdle, cancel)
	defer idle.Stop()
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = up.Close()
	})
	var down sync.WaitGroup
	down.Go(func() {
		defer cancel()
		buf := make([]byte, maxDatagram)
		for {
			n, err := up.Read(buf)
			if err != nil && ctx.Err() != nil {
				return
			}
			if err != nil { // of ICMP, and only once
				continue
			}
			idle.Reset(flowIdle)
			f.send(buf[:n])
		}
	})
	buf := make([]byte, maxDatagram)
	for {
		n, err := f.receive(ctx, buf)
		if err != nil {
			break
		}
		idle.Reset(flowIdle)
		_, _ = up.Write(buf[:n]) // what cannot be sent is lost
	}
	cancel()
	down.Wait()
	if !stop() {
		<-ended
		return
	}
	_ = up.Close()
}

// receive waits for a datagram of the sandbox.
func (f *flow) receive(ctx context.Context, buf []byte) (int, error) {
	entry, readable := waiter.NewChannelEntry(waiter.ReadableEvents)
	f.queue.EventRegister(&entry)
	defer f.queue.EventUnregister(&entry)
	for {
		w := tcpip.SliceWriter(buf)
		res, terr := f.ep.Read(&w, tcpip.ReadOptions{})
		switch terr.(type) {
		case nil:
			return res.Count, nil
		case *tcpip.ErrWouldBlock:
		default:
			return 0, errors.New(terr.String())
		}
		select {
		case <-readable:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// send gives the sandbox a datagram; what cannot be sent is lost.
func (f *flow) send(datagram []byte) {
	_, _ = f.ep.Write(bytes.NewReader(datagram), tcpip.WriteOptions{})
}
