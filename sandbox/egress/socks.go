package egress

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
)

// SOCKS version 5 (RFC 1928), as far as connecting without authentication.
const (
	socksVersion    = 5
	socksNoAuth     = 0
	socksNoMethod   = 0xff
	socksConnect    = 1
	socksIPv4       = 1
	socksName       = 3
	socksIPv6       = 4
	socksOK         = 0
	socksDenied     = 2
	socksFailed     = 5
	socksNoCommand  = 7
	socksNoAddrType = 8
)

func socksReply(code byte) []byte {
	return []byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0}
}

// readWords fills a part of what a client sends before it is connected.
func readWords(r io.Reader, part []byte) error {
	if _, err := io.ReadFull(r, part); err != nil {
		return fmt.Errorf("reading the client's request: %w", err)
	}
	return nil
}

// readSocks reads a client's greeting and request. What it cannot do it has
// answered when it returns an error.
func readSocks(r *bufio.Reader, w io.Writer) (target, error) {
	var head [2]byte
	if err := readWords(r, head[:]); err != nil {
		return target{}, err
	}
	methods := make([]byte, head[1])
	if err := readWords(r, methods); err != nil {
		return target{}, err
	}
	if !slices.Contains(methods, socksNoAuth) {
		_, err := w.Write([]byte{socksVersion, socksNoMethod})
		return target{}, errors.Join(errors.New("the client wants to authenticate"), err)
	}
	if _, err := w.Write([]byte{socksVersion, socksNoAuth}); err != nil {
		return target{}, err
	}
	var req [4]byte
	if err := readWords(r, req[:]); err != nil {
		return target{}, err
	}
	if req[0] != socksVersion || req[1] != socksConnect {
		_, err := w.Write(socksReply(socksNoCommand))
		return target{}, errors.Join(fmt.Errorf("command %d is not supported", req[1]), err)
	}
	t, err := readSocksTarget(r, req[3])
	if errors.Is(err, errSocksAddress) {
		_, sent := w.Write(socksReply(socksNoAddrType))
		err = errors.Join(err, sent)
	}
	return t, err
}

var errSocksAddress = errors.New("unusable address")

func readSocksTarget(r *bufio.Reader, kind byte) (target, error) {
	size := 0
	switch kind {
	case socksIPv4:
		size = 4
	case socksIPv6:
		size = 16
	case socksName:
		var n [1]byte
		if err := readWords(r, n[:]); err != nil {
			return target{}, err
		}
		size = int(n[0])
	default:
		return target{}, fmt.Errorf("%w of type %d", errSocksAddress, kind)
	}
	b := make([]byte, size+2)
	if err := readWords(r, b); err != nil {
		return target{}, err
	}
	t := target{host: string(b[:size]), port: binary.BigEndian.Uint16(b[size:])}
	if addr, ok := netip.AddrFromSlice(b[:size]); ok && kind != socksName {
		t.host = addr.Unmap().String()
	}
	var err error
	if t.host, err = normalHost(t.host); err != nil || t.port == 0 {
		return target{}, fmt.Errorf("%w: port %d: %w", errSocksAddress, t.port, err)
	}
	return t, nil
}

// socksAnswers are a tunnel's answers in SOCKS.
type socksAnswers struct{ client io.Writer }

func (a socksAnswers) denied(*visit) { _, _ = a.client.Write(socksReply(socksDenied)) }

func (a socksAnswers) failed(*visit, error) { _, _ = a.client.Write(socksReply(socksFailed)) }

func (a socksAnswers) connected() error {
	_, err := a.client.Write(socksReply(socksOK))
	return err
}
