package guest

import (
	"encoding/binary"
	"fmt"
	"io"
)

// magic opens the greeting. What comes instead of it (a runtime's complaint, a
// shell's prompt) is quoted in the error.
const magic = "proctor-guest\n"

// maxBuild bounds the build version's text.
const maxBuild = 256

type greeting struct {
	protocol uint32
	build    string
}

func (g greeting) encode() []byte {
	b := binary.BigEndian.AppendUint32([]byte(magic), g.protocol)
	build := g.build[:min(len(g.build), maxBuild)]
	b = binary.BigEndian.AppendUint16(b, uint16(len(build)))
	return append(b, build...)
}

// readGreeting reads no byte beyond the greeting.
func readGreeting(r io.Reader) (greeting, error) {
	head := make([]byte, len(magic))
	if n, err := io.ReadFull(r, head); err != nil {
		if n == 0 {
			return greeting{}, fmt.Errorf("the other side ended before its greeting: %w", noEOF(err))
		}
		return greeting{}, fmt.Errorf("the other side said %q and ended: %w", head[:n], noEOF(err))
	}
	if string(head) != magic {
		return greeting{}, fmt.Errorf("%w: the other side is no proctor guest, it said %q", errProtocol, head)
	}
	var fixed [6]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return greeting{}, fmt.Errorf("reading the greeting: %w", noEOF(err))
	}
	n := binary.BigEndian.Uint16(fixed[4:])
	if n > maxBuild {
		return greeting{}, fmt.Errorf("%w: build version of %d bytes", errProtocol, n)
	}
	build := make([]byte, n)
	if _, err := io.ReadFull(r, build); err != nil {
		return greeting{}, fmt.Errorf("reading the greeting: %w", noEOF(err))
	}
	return greeting{protocol: binary.BigEndian.Uint32(fixed[:]), build: string(build)}, nil
}

// check compares the greeting of the other side with one's own.
func (g greeting) check(own greeting) error {
	if g == own {
		return nil
	}
	return fmt.Errorf("the guest supervisor does not match: protocol %d build %q here, protocol %d build %q there; both sides must be the same proctor",
		own.protocol, own.build, g.protocol, g.build)
}
