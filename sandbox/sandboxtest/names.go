package sandboxtest

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
)

// ServeNames puts a name server into the world, which knows its names.
func (w *World) ServeNames(t testing.TB) {
	t.Helper()
	c := listenPacket(t)
	at := c.LocalAddr().(*net.UDPAddr).AddrPort()
	w.mu.Lock()
	w.server = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	w.mu.Unlock()
	answerAll(c, w.answer)
}

// Echo puts a server into the world that sends datagrams back.
func (w *World) Echo(t testing.TB, name string) {
	t.Helper()
	c := listenPacket(t)
	w.Put(name, "")
	w.mu.Lock()
	if w.datagrams == nil {
		w.datagrams = map[netip.Addr]string{}
	}
	w.datagrams[w.names[name]] = c.LocalAddr().String()
	w.mu.Unlock()
	answerAll(c, func(p []byte) []byte { return p })
}

func listenPacket(t testing.TB) net.PacketConn {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// answerAll answers datagrams until the connection is closed.
func answerAll(c net.PacketConn, answer func([]byte) []byte) {
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			if a := answer(buf[:n]); a != nil {
				_, _ = c.WriteTo(a, from)
			}
		}
	}()
}

// answer answers a question about the address of a name (RFC 1035, section 4).
// Names that are not in the world do not exist.
func (w *World) answer(query []byte) []byte {
	const header, question, typeA = 12, 4, 1
	name, end := "", header
	for end < len(query) && query[end] != 0 {
		next := end + 1 + int(query[end])
		if next >= len(query) {
			return nil
		}
		name += string(query[end+1:next]) + "."
		end = next
	}
	end += 1 + question
	if end > len(query) || name == "" {
		return nil
	}
	addr := w.Address(name[:len(name)-1])
	out := append([]byte(nil), query[:end]...)
	clear(out[4:header])
	out[2], out[3], out[5] = 0x81, 0x80, 1 // an answer, with recursion, to one question
	if !addr.IsValid() {
		out[3] |= 3 // NXDOMAIN
		return out
	}
	if binary.BigEndian.Uint16(query[end-question:]) != typeA {
		return out
	}
	out[7] = 1
	out = append(out, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 60, 0, 4) // the question's name, for a minute
	return append(out, addr.AsSlice()...)
}
