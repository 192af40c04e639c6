package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// headerSize is type, stream id and payload length.
	headerSize = 1 + 4 + 4
	// maxData bounds the payload of a data frame.
	maxData = 32 << 10
	// Window is how many bytes of one stream may be under way in one
	// direction before the receiver grants more.
	Window = 128 << 10
	// MaxStreams is how many connections the relay carries at a time; more
	// wait in the listener's backlog.
	MaxStreams = 256
)

// frameType tells frames apart.
type frameType byte

const (
	frameOpen   frameType = iota + 1 // nothing: a new stream, from inside only
	frameData                        // bytes
	frameEnd                         // nothing: no data will follow in this direction
	frameReset                       // nothing: the stream is over in both directions
	frameCredit                      // uint32: bytes that were read
)

// errProtocol marks a breach of the protocol by the other side.
var errProtocol = errors.New("relay protocol error")

// frame is one message. The payload is good until the next one is read.
type frame struct {
	typ     frameType
	id      uint32
	payload []byte
}

// frameReader reads frames into one buffer.
type frameReader struct {
	r   io.Reader
	buf [headerSize + maxData]byte
}

func (r *frameReader) next() (frame, error) {
	head := r.buf[:headerSize]
	if _, err := io.ReadFull(r.r, head); err != nil {
		return frame{}, err
	}
	f := frame{typ: frameType(head[0]), id: binary.BigEndian.Uint32(head[1:])}
	n := binary.BigEndian.Uint32(head[5:])
	if err := checkLength(f.typ, n); err != nil {
		return frame{}, err
	}
	f.payload = r.buf[headerSize : headerSize+int(n)]
	if _, err := io.ReadFull(r.r, f.payload); err != nil {
		return frame{}, fmt.Errorf("reading %d bytes of a frame: %w", n, noEOF(err))
	}
	return f, nil
}

func checkLength(t frameType, n uint32) error {
	ok := false
	switch t {
	case frameOpen, frameEnd, frameReset:
		ok = n == 0
	case frameData:
		ok = n > 0 && n <= maxData
	case frameCredit:
		ok = n == 4
	default:
		return fmt.Errorf("%w: unknown frame of type %d", errProtocol, t)
	}
	if !ok {
		return fmt.Errorf("%w: frame of type %d with %d bytes", errProtocol, t, n)
	}
	return nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// frameWriter writes whole frames, also from several goroutines.
type frameWriter struct {
	mu  sync.Mutex
	w   io.Writer
	buf [headerSize + maxData]byte
}

func (w *frameWriter) send(typ frameType, id uint32, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf[0] = byte(typ)
	binary.BigEndian.PutUint32(w.buf[1:], id)
	binary.BigEndian.PutUint32(w.buf[5:], uint32(len(payload)))
	n := copy(w.buf[headerSize:], payload)
	_, err := w.w.Write(w.buf[:headerSize+n])
	return err
}

// The relay's greeting.
const (
	magic   = "proctor-relay\n"
	version = 1
)

func hello(port uint16) []byte {
	b := binary.BigEndian.AppendUint16([]byte(magic), version)
	return binary.BigEndian.AppendUint16(b, port)
}

// ReadHello reads a relay's greeting, and no byte beyond it, and returns the
// port that the relay listens on inside.
func ReadHello(r io.Reader) (port uint16, err error) {
	var b [len(magic) + 4]byte
	n, err := io.ReadFull(r, b[:])
	if err != nil {
		return 0, fmt.Errorf("the relay said %q and ended: %w", b[:n], noEOF(err))
	}
	if string(b[:len(magic)]) != magic {
		return 0, fmt.Errorf("%w: this is no relay, it said %q", errProtocol, b[:])
	}
	if v := binary.BigEndian.Uint16(b[len(magic):]); v != version {
		return 0, fmt.Errorf("%w: the relay speaks version %d, want %d", errProtocol, v, version)
	}
	port = binary.BigEndian.Uint16(b[len(magic)+2:])
	if port == 0 {
		return 0, fmt.Errorf("%w: the relay listens on port 0", errProtocol)
	}
	return port, nil
}
