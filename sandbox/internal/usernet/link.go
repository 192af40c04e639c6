package usernet

import (
	"encoding/binary"
	"sync"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// link is a Device as the stack sees it. Both kernels are on this machine, so
// that checksums are left out where the header before the packet can say so,
// and a TCP segment is as large as a packet can be.
type link struct {
	dev Device

	mu         sync.RWMutex
	dispatcher stack.NetworkDispatcher
	closed     bool
	reader     sync.WaitGroup
}

var (
	_ stack.LinkEndpoint = (*link)(nil)
	_ stack.GSOEndpoint  = (*link)(nil)
)

// Attach starts reading, or ends it when there is no dispatcher any more.
func (l *link) Attach(d stack.NetworkDispatcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	start := l.dispatcher == nil && d != nil && !l.closed
	l.dispatcher = d
	if start {
		l.reader.Go(func() { l.read(d) })
	}
}

// read hands packets to the stack until the device is closed.
func (l *link) read(d stack.NetworkDispatcher) {
	in := newScatter()
	defer in.release()
	for {
		n, err := l.dev.ReadPacket(in.next())
		if err != nil {
			return
		}
		packet, first := in.take(n)
		if packet.Size() == 0 {
			packet.Release()
			continue
		}
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: packet})
		pkt.RXChecksumValidated = true
		switch {
		case isIPv4(first[0]):
			d.DeliverNetworkPacket(ipv4.ProtocolNumber, pkt)
		case isIPv6(first[0]):
			d.DeliverNetworkPacket(ipv6.ProtocolNumber, pkt)
		}
		pkt.DecRef()
	}
}

// WritePackets sends packets to the sandbox. What the device does not take is
// lost, as on any link.
func (l *link) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return 0, &tcpip.ErrClosedForSend{}
	}
	for i, pkt := range pkts.AsSlice() {
		var head [headerLen]byte
		putHeader(&head, pkt)
		var few [8][]byte
		bufs := append(append(few[:0], head[:]), pkt.AsSlices()...)
		if err := l.dev.WritePacket(bufs); err != nil {
			return i, &tcpip.ErrNoBufferSpace{}
		}
	}
	return pkts.Len(), nil
}

// putHeader says which checksum is left out, and how a packet that is larger
// than the sandbox's device is to be cut.
func putHeader(head *[headerLen]byte, pkt *stack.PacketBuffer) {
	gso := pkt.GSOOptions
	if gso.Type == stack.GSONone {
		return
	}
	if gso.NeedsCsum {
		head[0] = flagNeedsChecksum
		binary.NativeEndian.PutUint16(head[6:], gso.L3HdrLen)
		binary.NativeEndian.PutUint16(head[8:], gso.CsumOffset)
	}
	if pkt.Data().Size() > int(gso.MSS) {
		head[1] = segmentTCP4
		if gso.Type == stack.GSOTCPv6 {
			head[1] = segmentTCP6
		}
		binary.NativeEndian.PutUint16(head[2:], uint16(pkt.HeaderSize()))
		binary.NativeEndian.PutUint16(head[4:], gso.MSS)
	}
}

// shut closes the device and waits for the reader. Nothing is written later.
func (l *link) shut() {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	if first {
		_ = l.dev.Close() // nothing that was written waits in it
	}
	l.reader.Wait()
}

// IsAttached reports whether the stack takes packets.
func (l *link) IsAttached() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.dispatcher != nil
}

// MTU is the largest packet.
func (l *link) MTU() uint32 { return maxTransfer }

// SetMTU does nothing: the device's is fixed.
func (l *link) SetMTU(uint32) {}

// MaxHeaderLength is 0: the header before a packet is not in its buffer.
func (l *link) MaxHeaderLength() uint16 { return 0 }

// LinkAddress is none.
func (l *link) LinkAddress() tcpip.LinkAddress { return "" }

// SetLinkAddress does nothing.
func (l *link) SetLinkAddress(tcpip.LinkAddress) {}

// Capabilities: what comes in needs no check of its checksum.
func (l *link) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload
}

// GSOMaxSize is the most that one TCP segment has before it is cut.
func (l *link) GSOMaxSize() uint32 { return maxTransfer }

// SupportedGSO says that the other side cuts segments.
func (l *link) SupportedGSO() stack.SupportedGSO { return stack.HostGSOSupported }

// Wait returns when nothing is read any more.
func (l *link) Wait() { l.reader.Wait() }

// ARPHardwareType is none.
func (l *link) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }

// AddHeader adds nothing.
func (l *link) AddHeader(*stack.PacketBuffer) {}

// ParseHeader reads nothing.
func (l *link) ParseHeader(*stack.PacketBuffer) bool { return true }

// Close does nothing: shut does, which comes first.
func (l *link) Close() {}

// SetOnCloseAction does nothing.
func (l *link) SetOnCloseAction(func()) {}

// scatter holds the buffers that the next packet is read into.
type scatter struct {
	head  [headerLen]byte
	views []*buffer.View
	bufs  [][]byte
}

func newScatter() *scatter {
	return &scatter{views: make([]*buffer.View, len(bufferSizes)), bufs: make([][]byte, len(bufferSizes)+1)}
}

// next fills up what the last packet took.
func (s *scatter) next() [][]byte {
	s.bufs[0] = s.head[:]
	for i, v := range s.views {
		if v != nil {
			break
		}
		v = buffer.NewViewSize(bufferSizes[i])
		s.views[i], s.bufs[i+1] = v, v.AsSlice()
	}
	return s.bufs
}

// take removes the buffers that hold a packet of n bytes with its header; first
// is the beginning of the packet.
func (s *scatter) take(n int) (packet buffer.Buffer, first []byte) {
	n -= headerLen
	for i := 0; i < len(s.views) && n > 0; i++ {
		v := s.views[i]
		s.views[i] = nil
		if n < v.Size() {
			v.CapLength(n)
		}
		n -= v.Size()
		if i == 0 {
			first = v.AsSlice()
		}
		_ = packet.Append(v) // fails only where sizes overflow
	}
	return packet, first
}

func (s *scatter) release() {
	for _, v := range s.views {
		if v != nil {
			v.Release()
		}
	}
}
