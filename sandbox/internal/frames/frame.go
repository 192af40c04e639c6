package frames

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// HeaderSize is type, id and payload length.
	HeaderSize = 1 + 4 + 4
	// MaxData bounds the payload of a data frame of a stream.
	MaxData = 64 << 10
	// MaxFiles bounds that of a data frame of an upload or a download. Few of them are under
	// way at a time, and a sandbox with a kernel of its own pays for each frame, not for bytes.
	MaxFiles = 256 << 10
)

// ErrProtocol marks a breach of the protocol by the other side.
var ErrProtocol = errors.New("protocol error")

// Type says what a frame is; each protocol has its own.
type Type byte

// Frame is one message. Its payload belongs to whoever was given the frame.
type Frame struct {
	Type    Type
	ID      uint32
	Payload []byte
}

// Pool keeps buffers of large payloads for further use. The zero value is
// ready.
type Pool struct{ data, files sync.Pool }

// pooledFrom is the payload length from which a buffer of full size is taken.
// The data frames that wait in one window then take at most four times the
// window, as those of files do, whose buffers are four times as large.
const pooledFrom = MaxData / 4

func (b *Pool) get(n int) []byte {
	switch {
	case n < pooledFrom || n > MaxFiles:
		return make([]byte, n)
	case n > MaxData:
		if buf, ok := b.files.Get().(*[MaxFiles]byte); ok {
			return buf[:n]
		}
		return new([MaxFiles]byte)[:n]
	}
	if buf, ok := b.data.Get().(*[MaxData]byte); ok {
		return buf[:n]
	}
	return new([MaxData]byte)[:n]
}

// Put takes back the payload of a frame that is not used any more.
func (b *Pool) Put(payload []byte) {
	switch cap(payload) {
	case MaxData:
		b.data.Put((*[MaxData]byte)(payload[:MaxData]))
	case MaxFiles:
		b.files.Put((*[MaxFiles]byte)(payload[:MaxFiles]))
	}
}

// Limit returns the least and the greatest payload length of a type.
type Limit func(Type) (least, most int)

// Read reads one frame.
func Read(r io.Reader, pool *Pool, limit Limit) (Frame, error) {
	var h [HeaderSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return Frame{}, io.EOF // the orderly end
		}
		return Frame{}, fmt.Errorf("reading a frame: %w", err)
	}
	f := Frame{Type: Type(h[0]), ID: binary.BigEndian.Uint32(h[1:])}
	n := binary.BigEndian.Uint32(h[5:])
	if least, most := limit(f.Type); uint64(n) < uint64(least) || uint64(n) > uint64(most) {
		return Frame{}, fmt.Errorf("%w: frame of type %d with %d bytes, %d to %d are allowed", ErrProtocol, f.Type, n, least, most)
	}
	f.Payload = pool.get(int(n))
	if _, err := io.ReadFull(r, f.Payload); err != nil {
		return Frame{}, fmt.Errorf("reading %d bytes of a frame: %w", n, noEOF(err))
	}
	return f, nil
}

// Serve reads frames and hands them to dispatch, until r ends or dispatch
// refuses one, and returns why: io.EOF at an orderly end. It reads ahead.
func Serve(r io.Reader, pool *Pool, limit Limit, dispatch func(Frame) error) error {
	in := bufio.NewReaderSize(r, MaxData)
	for {
		f, err := Read(in, pool, limit)
		if err == nil {
			err = dispatch(f)
		}
		if err != nil {
			return err
		}
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Packet is a frame under construction: room for the header, then payload.
// It saves copying data that is read straight into it.
type Packet []byte

// NewPacket has room for n bytes of payload.
func NewPacket(n int) Packet { return make(Packet, HeaderSize, HeaderSize+n) }

// Space is where n bytes of payload can be read into.
func (p Packet) Space(n int) []byte { return p[HeaderSize : HeaderSize+n] }

// Writer writes whole frames, also from several goroutines.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	buf Packet
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Send writes a frame. The payload is not kept.
func (w *Writer) Send(typ Type, id uint32, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.buf == nil {
		w.buf = NewPacket(MaxData)
	}
	p := append(w.buf[:HeaderSize], payload...)
	return w.write(typ, id, p)
}

// SendPacket writes p, the first n bytes of whose payload are filled in.
func (w *Writer) SendPacket(typ Type, id uint32, p Packet, n int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(typ, id, p[:HeaderSize+n])
}

func (w *Writer) write(typ Type, id uint32, p Packet) error {
	p[0] = byte(typ)
	binary.BigEndian.PutUint32(p[1:], id)
	binary.BigEndian.PutUint32(p[5:], uint32(len(p)-HeaderSize))
	if _, err := w.w.Write(p); err != nil {
		return fmt.Errorf("writing a frame: %w", err)
	}
	return nil
}

// SendCredit grants n bytes.
func (w *Writer) SendCredit(typ Type, id uint32, n int) error {
	var payload [4]byte
	binary.BigEndian.PutUint32(payload[:], uint32(n))
	return w.Send(typ, id, payload[:])
}

// CreditOf is what the payload of a credit frame grants.
func CreditOf(payload []byte) (int, error) {
	if len(payload) != 4 {
		return 0, fmt.Errorf("%w: credit of %d bytes length", ErrProtocol, len(payload))
	}
	return int(binary.BigEndian.Uint32(payload)), nil
}
