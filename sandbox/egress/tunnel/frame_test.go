package tunnel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

func raw(typ frames.Type, id uint32, payload ...byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{byte(typ)}, id)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

func TestBreachesEndTheConnection(t *testing.T) {
	t.Parallel()
	flood := raw(frameOpen, 1)
	for range Window/frames.MaxData + 1 {
		flood = append(flood, raw(frameData, 1, make([]byte, frames.MaxData)...)...)
	}
	var many []byte
	for id := range uint32(maxStreams + 1) {
		many = append(many, raw(frameOpen, id)...)
	}
	for name, in := range map[string][]byte{
		"unknown type":         raw(99, 1),
		"no data":              append(raw(frameOpen, 1), raw(frameData, 1)...),
		"open with payload":    raw(frameOpen, 1, 1),
		"opened twice":         append(raw(frameOpen, 1), raw(frameOpen, 1)...),
		"short credit":         append(raw(frameOpen, 1), raw(frameCredit, 1, 1)...),
		"credit for nothing":   append(raw(frameOpen, 1), raw(frameCredit, 1, 0, 0, 0, 1)...),
		"data after the end":   append(append(raw(frameOpen, 1), raw(frameEnd, 1)...), raw(frameData, 1, 1)...),
		"finished from inside": append(raw(frameOpen, 1), raw(frameFinish, 1)...),
		"more than granted":    flood,
		"more streams than go": many,
		"huge":                 {byte(frameData), 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff},
	} {
		m := NewMux(bytes.NewReader(in), io.Discard)
		if err := m.Run(); !errors.Is(err, frames.ErrProtocol) {
			t.Errorf("%s: got %v, want a protocol error", name, err)
		}
	}
	for name, in := range map[string][]byte{
		"nothing":              nil,
		"data of no stream":    raw(frameData, 7, 1),
		"end of no stream":     raw(frameEnd, 7),
		"a stream left open":   raw(frameOpen, 7),
		"reset and used again": append(append(raw(frameOpen, 7), raw(frameReset, 7)...), raw(frameOpen, 7)...),
	} {
		m := NewMux(bytes.NewReader(in), io.Discard)
		if err := m.Run(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v, want io.EOF", name, err)
		}
	}
}

func TestReadHello(t *testing.T) {
	t.Parallel()
	if port, err := ReadHello(bytes.NewReader(hello(4711).Encode())); err != nil || port != 4711 {
		t.Errorf("got %d, %v", port, err)
	}
	other, word := hello(1), hello(1)
	other.Version++
	word.Text = "http"
	for name, in := range map[string][]byte{
		"nothing": nil, "short": hello(1).Encode()[:9], "shell": []byte("bash: proctor-guest: cannot execute\n"),
		"version": other.Encode(), "port": hello(0).Encode(), "no port": word.Encode(),
	} {
		if _, err := ReadHello(bytes.NewReader(in)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzMux feeds the outer end what a hostile relay may send.
func FuzzMux(f *testing.F) {
	f.Add(append(raw(frameOpen, 1), raw(frameData, 1, 'x')...))
	f.Add(append(raw(frameOpen, 1), raw(frameEnd, 1)...))
	f.Add(append(raw(frameOpen, 1), raw(frameReset, 1)...))
	f.Add(raw(frameCredit, 1, 0, 0, 1, 0))
	f.Add(raw(frameFinish, 1))
	f.Fuzz(func(t *testing.T, in []byte) {
		m := NewMux(bytes.NewReader(in), io.Discard)
		read := make(chan int, 1)
		go func() {
			total := 0
			for {
				s, err := m.Accept()
				if err != nil {
					read <- total
					return
				}
				n, _ := io.Copy(io.Discard, s)
				total += int(n)
				_ = s.Close()
			}
		}()
		if err := m.Run(); err == nil {
			t.Error("Run ended without a reason")
		}
		if n := <-read; n > len(in) {
			t.Errorf("read %d bytes of %d", n, len(in))
		}
	})
}

func FuzzReadHello(f *testing.F) {
	f.Add(hello(80).Encode())
	f.Fuzz(func(t *testing.T, in []byte) {
		port, err := ReadHello(bytes.NewReader(in))
		if err == nil && port == 0 {
			t.Error("port 0 passes")
		}
	})
}

// TestCloseAfterTheCarrierHasEnded: the stream is over on both sides then, which is no error.
func TestCloseAfterTheCarrierHasEnded(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	inside, carrier := io.Pipe()
	m := NewMux(r, carrier)
	go func() { _ = m.Run() }()
	if _, err := w.Write(raw(frameOpen, 1)); err != nil {
		t.Fatal(err)
	}
	s, err := m.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = inside.Close()
	if err := s.Finish(); err != nil {
		t.Errorf("got %v", err)
	}
	_ = w.Close()
}
