package frames

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// maxText bounds the text of a greeting.
const maxText = 256

// Greeting is what one side says first.
type Greeting struct {
	// Magic is a line that says which protocol this is, such as
	// "proctor-guest\n". What comes instead of it (a runtime's complaint, a
	// shell's prompt) is quoted in errors.
	Magic string
	// Version changes with every change of the bytes on the wire.
	Version uint32
	Text    string
}

// Encode writes the greeting; a Text is cut after 256 bytes.
func (g Greeting) Encode() []byte {
	b := binary.BigEndian.AppendUint32([]byte(g.Magic), g.Version)
	text := g.Text[:min(len(g.Text), maxText)]
	b = binary.BigEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

// ReadGreeting reads no byte beyond the greeting.
func ReadGreeting(r io.Reader, magic string) (Greeting, error) {
	head := make([]byte, len(magic))
	if n, err := io.ReadFull(r, head); err != nil {
		if n == 0 {
			return Greeting{}, fmt.Errorf("the other side ended before its greeting: %w", noEOF(err))
		}
		return Greeting{}, fmt.Errorf("the other side said %q and ended: %w", head[:n], noEOF(err))
	}
	if string(head) != magic {
		name := strings.ReplaceAll(strings.TrimSpace(magic), "-", " ")
		return Greeting{}, fmt.Errorf("%w: the other side is no %s, it said %q", ErrProtocol, name, head)
	}
	var fixed [6]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return Greeting{}, fmt.Errorf("reading the greeting: %w", noEOF(err))
	}
	n := binary.BigEndian.Uint16(fixed[4:])
	if n > maxText {
		return Greeting{}, fmt.Errorf("%w: greeting with a text of %d bytes", ErrProtocol, n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return Greeting{}, fmt.Errorf("reading the greeting: %w", noEOF(err))
	}
	return Greeting{Magic: magic, Version: binary.BigEndian.Uint32(fixed[:]), Text: string(text)}, nil
}
