package egress

import (
	"encoding/binary"
	"errors"
)

// The parts of a TLS ClientHello that lead to the server name (RFC 8446,
// sections 4.1.2 and 5.1; RFC 6066, section 3).
const (
	recordHandshake  = 22
	recordHeader     = 5
	maxRecord        = 1 << 14
	typeClientHello  = 1
	extensionSNI     = 0
	nameTypeHostName = 0
	// maxHello bounds what is held back of a client's first words.
	maxHello = 64 << 10
)

var (
	errShortHello = errors.New("more is needed")
	errLongHello  = errors.New("the TLS handshake begins with more than can be looked at")
)

// serverName returns the server name in the ClientHello that data begins with:
// empty when there is none or data is no TLS. errShortHello means that it
// cannot be told yet, errLongHello that it never can.
func serverName(data []byte) (string, error) {
	var message []byte
	for {
		if len(data) == 0 {
			return "", errShortHello
		}
		if data[0] != recordHandshake || len(data) > 1 && data[1] != 3 {
			return "", nil
		}
		if len(data) < recordHeader {
			return "", errShortHello
		}
		n := int(binary.BigEndian.Uint16(data[3:]))
		if n == 0 || n > maxRecord {
			return "", nil
		}
		take := min(n, len(data)-recordHeader)
		message = append(message, data[recordHeader:recordHeader+take]...)
		if len(message) >= 1 && message[0] != typeClientHello {
			return "", nil
		}
		if len(message) >= 4 {
			length := int(message[1])<<16 | int(message[2])<<8 | int(message[3])
			if length > maxHello-4 {
				return "", errLongHello
			}
			if len(message) >= 4+length {
				return nameInHello(message[4 : 4+length]), nil
			}
		}
		if take < n {
			return "", errShortHello
		}
		data = data[recordHeader+n:]
	}
}

// nameInHello looks through the extensions of a whole ClientHello.
func nameInHello(hello []byte) string {
	s := bytesOf(hello)
	s.skip(2 + 32)    // version, random
	s.skip(s.uint(1)) // session id
	s.skip(s.uint(2)) // cipher suites
	s.skip(s.uint(1)) // compression methods
	ext := s.sub(s.uint(2))
	for len(ext) > 0 {
		typ, body := ext.uint(2), ext.sub(ext.uint(2))
		if typ != extensionSNI {
			continue
		}
		names := body.sub(body.uint(2))
		for len(names) > 0 {
			kind, name := names.uint(1), names.sub(names.uint(2))
			if kind == nameTypeHostName {
				return string(name)
			}
		}
	}
	return ""
}

// bytesOf is read from the front; beyond the end there are zeros.
type bytesOf []byte

func (b *bytesOf) sub(n int) bytesOf {
	n = min(n, len(*b))
	out := (*b)[:n:n]
	*b = (*b)[n:]
	return out
}

func (b *bytesOf) skip(n int) { b.sub(n) }

func (b *bytesOf) uint(n int) int {
	v := 0
	for _, c := range b.sub(n) {
		v = v<<8 | int(c)
	}
	return v
}
