package usernet

import "gvisor.dev/gvisor/pkg/tcpip/header"

// Device carries IP packets to and from a sandbox's network namespace. Each
// packet has a virtio-net header of headerLen bytes before it (struct
// virtio_net_hdr, Virtual I/O Device specification 1.2, section 5.1.6).
type Device interface {
	// ReadPacket waits for a packet and scatters it over the buffers. It returns
	// how many bytes it has, or an error when the device is closed.
	ReadPacket(bufs [][]byte) (int, error)
	// WritePacket sends one packet, gathered from the buffers. It may be called
	// concurrently.
	WritePacket(bufs [][]byte) error
	// Close ends a ReadPacket that waits.
	Close() error
}

const (
	// headerLen is that of a virtio-net header without the number of buffers.
	headerLen = 10
	// maxTransfer is the device's largest packet: that of IPv4, rounded down so
	// that a TCP segment of it has a length that buffers like.
	maxTransfer = 65520
)

// Fields of a virtio-net header.
const (
	flagNeedsChecksum = 1
	segmentTCP4       = 1
	segmentTCP6       = 4
)

// bufferSizes are those that a packet is read into: of a small one only small
// buffers are kept, so that no sandbox takes 64 KiB of memory with each byte.
var bufferSizes = []int{128, 256, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}

const ipVersionShift = 4

func isIPv4(first byte) bool { return first>>ipVersionShift == header.IPv4Version }
func isIPv6(first byte) bool { return first>>ipVersionShift == header.IPv6Version }
