package guest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// protocolVersion changes with every change of the bytes on the wire.
const protocolVersion = 1

const (
	// headerSize is type, id and payload length.
	headerSize = 1 + 4 + 4
	// maxData bounds the payload of a data frame in either direction, and of
	// every frame that comes from inside.
	maxData = 64 << 10
	// maxRequest bounds a request: Linux passes at most 2 MiB of arguments
	// and environment by default, 6 MiB with a large stack limit.
	maxRequest = 8 << 20
	// window is how many bytes of one call, data frames' payloads plus
	// frameCost each, may be under way before the receiver grants more.
	window = 512 << 10
	// frameCost stands for the memory that a frame takes besides its payload.
	frameCost = 64
)

// frameType tells frames apart. Requests come from the client, replies from
// the supervisor.
type frameType byte

const (
	reqExec     frameType = iota + 1 // execRequest: run a command
	reqMark                          // nothing: note the processes
	reqKillTree                      // killRequest: end what was born since
	reqUpload                        // text: directory; data frames follow
	reqDownload                      // text: path
	reqKill                          // killRequest: end the exec of this id
	reqCancel                        // nothing: give up the call of this id
	reqData                          // bytes of standard input or of a tar
	reqDataEnd                       // text: empty at the end, else why there is no more
	reqCredit                        // uint32: bytes of output consumed
)

const (
	repStdout frameType = iota + 64 // bytes of standard output, or of a tar
	repStderr                       // bytes of standard error
	repCredit                       // uint32: bytes of reqData consumed
	repDone                         // reply: the call is over
)

// frame is one message. payload is owned by whoever was given the frame.
type frame struct {
	typ     frameType
	id      uint32
	payload []byte
}

// errProtocol marks a breach of the protocol by the other side.
var errProtocol = errors.New("protocol error")

// buffers are used again for large payloads. The zero value is ready.
type buffers struct{ pool sync.Pool }

// pooledFrom is the payload length from which a buffer of full size is taken.
// The data frames that wait in one window are then at most 32 such buffers.
const pooledFrom = 16 << 10

func (b *buffers) get(n int) []byte {
	if n < pooledFrom || n > maxData {
		return make([]byte, n)
	}
	if buf, ok := b.pool.Get().(*[maxData]byte); ok {
		return buf[:n]
	}
	return new([maxData]byte)[:n]
}

// put takes back what get gave, when nobody uses it any more.
func (b *buffers) put(p []byte) {
	if cap(p) == maxData {
		b.pool.Put((*[maxData]byte)(p[:maxData]))
	}
}

// readFrame reads one frame whose payload is at most limit(type) bytes long.
func readFrame(r io.Reader, b *buffers, limit func(frameType) int) (frame, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return frame{}, err
	}
	f := frame{typ: frameType(h[0]), id: binary.BigEndian.Uint32(h[1:])}
	n := binary.BigEndian.Uint32(h[5:])
	if most := limit(f.typ); uint64(n) > uint64(most) {
		return frame{}, fmt.Errorf("%w: frame of type %d with %d bytes, at most %d are allowed", errProtocol, f.typ, n, most)
	}
	f.payload = b.get(int(n))
	if _, err := io.ReadFull(r, f.payload); err != nil {
		return frame{}, fmt.Errorf("reading %d bytes of a frame: %w", n, noEOF(err))
	}
	return f, nil
}

// replyLimit is for what comes from inside.
func replyLimit(frameType) int { return maxData }

// requestLimit is for what comes from outside.
func requestLimit(t frameType) int {
	if t == reqData {
		return maxData
	}
	return maxRequest
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// packet is a frame under construction: room for the header, then payload.
// It saves copying data that is read straight into it.
type packet []byte

// newPacket has room for n bytes of payload.
func newPacket(n int) packet { return make(packet, headerSize, headerSize+n) }

// space is where payload can be read into.
func (p packet) space(n int) []byte { return p[headerSize : headerSize+n] }

// frameWriter writes whole frames, also from several goroutines.
type frameWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// send writes a frame. The payload is copied.
func (w *frameWriter) send(typ frameType, id uint32, payload []byte) error {
	return w.sendPacket(typ, id, append(newPacket(len(payload)), payload...))
}

// sendPacket fills in the header of p and writes it.
func (w *frameWriter) sendPacket(typ frameType, id uint32, p packet) error {
	p[0] = byte(typ)
	binary.BigEndian.PutUint32(p[1:], id)
	binary.BigEndian.PutUint32(p[5:], uint32(len(p)-headerSize))
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(p)
	return err
}

// sendCredit grants n bytes.
func (w *frameWriter) sendCredit(typ frameType, id uint32, n int) error {
	return w.send(typ, id, binary.BigEndian.AppendUint32(nil, uint32(n)))
}
