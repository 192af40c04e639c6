package egress

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The parts of a TLS ClientHello that lead to the server name (RFC 8446,
// sections 4.1.2 and 5.1; RFC 6066, section 3).
const (
	recordFirst, recordLast = 20, 24 // the types of records
	recordHandshake         = 22
	recordHeader            = 5
	maxRecord               = 1 << 14
	typeClientHello         = 1
	messageHeader           = 4
	extensionSNI            = 0
	nameTypeHostName        = 0
	// versionsEnd is the first major version that a record cannot be of. All real
	// ones are 3, but there are servers, those of Go among them, that take what is
	// below this one.
	versionsEnd = 16
	// maxHello bounds what is held back of a client's first words.
	maxHello = 64 << 10
)

var (
	errShortHello = errors.New("more is needed")
	errLongHello  = errors.New("the TLS handshake begins with more than can be looked at")
	// errNoHello is for what a lenient server may take for a handshake although
	// its server name cannot be told.
	errNoHello = errors.New("what begins like TLS is no ClientHello that can be read")
)

// likeTLS reports whether data begins as a record of TLS; undecided that more is
// needed to tell. No protocol of lines of text does.
func likeTLS(data []byte) (like, undecided bool) {
	switch {
	case len(data) == 0:
		return false, true
	case data[0] < recordFirst || data[0] > recordLast:
		return false, false
	case len(data) == 1:
		return false, true
	}
	return data[1] < versionsEnd, false
}

// serverName returns the server name in the ClientHello that data begins with:
// empty when there is none or data is no TLS. errShortHello means that it
// cannot be told yet. What begins as a record of TLS and has no name that can be
// told for certain gives errLongHello or errNoHello: a server may read it otherwise.
func serverName(data []byte) (string, error) {
	switch like, undecided := likeTLS(data); {
	case undecided:
		return "", errShortHello
	case !like:
		return "", nil
	}
	var message []byte
	for {
		body, rest, err := nextRecord(data)
		if err != nil && !errors.Is(err, errShortHello) {
			return "", err
		}
		message = append(message, body...)
		if len(message) >= 1 && message[0] != typeClientHello {
			return "", fmt.Errorf("%w: its first message is of type %d", errNoHello, message[0])
		}
		if len(message) >= messageHeader {
			length := int(message[1])<<16 | int(message[2])<<8 | int(message[3])
			if length > maxHello-messageHeader {
				return "", errLongHello
			}
			if len(message) >= messageHeader+length {
				return nameInHello(message[messageHeader : messageHeader+length])
			}
		}
		if err != nil {
			return "", err
		}
		data = rest
	}
}

// nextRecord takes a record of the handshake from data. What there is of its body
// comes with errShortHello when that is not all.
func nextRecord(data []byte) (body, rest []byte, err error) {
	like, undecided := likeTLS(data)
	if len(data) > 0 && data[0] != recordHandshake || !like && !undecided {
		return nil, nil, fmt.Errorf("%w: a record of type %d comes before its end", errNoHello, data[0])
	}
	if len(data) < recordHeader {
		return nil, nil, errShortHello
	}
	n := int(binary.BigEndian.Uint16(data[3:]))
	if n == 0 || n > maxRecord {
		return nil, nil, fmt.Errorf("%w: a record has %d bytes", errNoHello, n)
	}
	data = data[recordHeader:]
	if n > len(data) {
		return data, nil, errShortHello
	}
	return data[:n], data[n:], nil
}

// nameInHello looks through the extensions of a whole ClientHello.
func nameInHello(hello []byte) (string, error) {
	s := fields{data: hello}
	s.take(2 + 32)    // version, random
	s.take(s.uint(1)) // session id
	s.take(s.uint(2)) // cipher suites
	s.take(s.uint(1)) // compression methods
	if s.done() {
		return "", nil // of a client that knows no extensions
	}
	ext := s.sub(s.uint(2))
	if !s.done() {
		return "", fmt.Errorf("%w: its parts have not the lengths that it says", errNoHello)
	}
	name, named := "", false
	for len(ext.data) > 0 {
		typ := ext.uint(2)
		body := ext.sub(ext.uint(2))
		if ext.short {
			return "", fmt.Errorf("%w: its extensions have not the lengths that it says", errNoHello)
		}
		if typ != extensionSNI {
			continue
		}
		if named {
			return "", fmt.Errorf("%w: it has more than one server name", errNoHello)
		}
		var err error
		if name, err = nameInExtension(body); err != nil {
			return "", err
		}
		named = true
	}
	return name, nil
}

// nameInExtension reads a list of server names, which has one: there is one kind
// of names, and no kind twice (RFC 6066).
func nameInExtension(body fields) (string, error) {
	names := body.sub(body.uint(2))
	kind := names.uint(1)
	name := names.take(names.uint(2))
	if !body.done() || names.short || kind != nameTypeHostName || len(name) == 0 {
		return "", fmt.Errorf("%w: its server name cannot be read", errNoHello)
	}
	if !names.done() {
		return "", fmt.Errorf("%w: it has more than one server name", errNoHello)
	}
	return string(name), nil
}

// fields are read from the front; short says that one went beyond the end.
type fields struct {
	data  []byte
	short bool
}

func (f *fields) take(n int) []byte {
	if n > len(f.data) {
		f.data, f.short = nil, true
		return nil
	}
	out := f.data[:n:n]
	f.data = f.data[n:]
	return out
}

func (f *fields) sub(n int) fields {
	out := f.take(n)
	return fields{data: out, short: f.short}
}

func (f *fields) uint(n int) int {
	v := 0
	for _, c := range f.take(n) {
		v = v<<8 | int(c)
	}
	return v
}

// done reports whether all was read, and nothing beyond.
func (f *fields) done() bool { return !f.short && len(f.data) == 0 }
