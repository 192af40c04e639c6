package tunnel

import (
	"fmt"
	"io"
	"strconv"

	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

// The ports that relays prefer, by what they lead to. They are outside of the
// range that Linux takes local ports from, so that they are usually free, and the
// same in every sandbox.
const (
	ProxyPort  = 61080
	ServerPort = 61081
)

const (
	// Window is how many bytes of one stream may be under way in one
	// direction before the receiver grants more.
	Window = 128 << 10
	// maxStreams is how many connections the relay carries at a time; more
	// wait in the listener's backlog.
	maxStreams = 256
	// maxPayload is what each side sends in one data frame.
	maxPayload = 32 << 10
)

// The types of frames.
const (
	frameOpen   frames.Type = iota + 1 // nothing: a new stream, from inside only
	frameData                          // bytes
	frameEnd                           // nothing: no data will follow in this direction
	frameReset                         // nothing: the stream is over in both directions
	frameCredit                        // uint32: bytes that were read
	frameFinish                        // nothing: no data will follow, and none is read, from outside only
)

// limit is for both directions.
func limit(t frames.Type) (least, most int) {
	switch t {
	case frameData:
		return 1, frames.MaxData
	case frameCredit:
		return 4, 4
	}
	return 0, 0
}

// The relay's greeting. Its text is the port that it listens on.
const (
	magic   = "proctor-relay\n"
	version = 3
)

func hello(port uint16) frames.Greeting {
	return frames.Greeting{Magic: magic, Version: version, Text: strconv.Itoa(int(port))}
}

// ReadHello reads a relay's greeting, and no byte beyond it, and returns the
// port that the relay listens on inside.
func ReadHello(r io.Reader) (port uint16, err error) {
	g, err := frames.ReadGreeting(r, magic)
	if err != nil {
		return 0, fmt.Errorf("greeting the relay: %w", err)
	}
	if g.Version != version {
		return 0, fmt.Errorf("%w: the relay speaks version %d, want %d", frames.ErrProtocol, g.Version, version)
	}
	n, err := strconv.ParseUint(g.Text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%w: the relay listens on port %q", frames.ErrProtocol, g.Text)
	}
	return uint16(n), nil
}
