package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"testing"
)

// clientHello is the first flight of Go's TLS client.
func clientHello(t testing.TB, name string) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		_ = tls.Client(theirs, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		_ = theirs.Close()
	}()
	buf := make([]byte, 16<<10)
	n, err := ours.Read(buf)
	_ = ours.Close()
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

func TestServerName(t *testing.T) {
	t.Parallel()
	whole := clientHello(t, "www.example.org")
	if name, err := serverName(whole); err != nil || name != "www.example.org" {
		t.Errorf("got %q, %v", name, err)
	}
	for n := range whole {
		if _, err := serverName(whole[:n]); !errors.Is(err, errShortHello) {
			t.Fatalf("%d of %d bytes: got %v, want more to be needed", n, len(whole), err)
		}
	}
	// The same message in records of 10 bytes.
	var split []byte
	for body := whole[recordHeader:]; len(body) > 0; {
		n := min(10, len(body))
		split = append(append(split, whole[0], whole[1], whole[2], 0, byte(n)), body[:n]...)
		body = body[n:]
	}
	if name, err := serverName(split); err != nil || name != "www.example.org" {
		t.Errorf("in pieces: got %q, %v", name, err)
	}
	if name, err := serverName(clientHello(t, "")); err != nil || name != "" {
		t.Errorf("without a name: got %q, %v", name, err)
	}
	for _, other := range []string{"GET / HTTP/1.1\r\n", "SSH-2.0-x\r\n", "\x16\x00", "\x16\x03\x01\x00\x01\x02"} {
		if name, err := serverName([]byte(other)); err != nil || name != "" {
			t.Errorf("%q: got %q, %v", other, name, err)
		}
	}
	if _, err := serverName([]byte("\x16\x03\x01\x00\x04\x01\xff\xff\xff")); !errors.Is(err, errLongHello) {
		t.Errorf("a huge hello: got %v", err)
	}
}

func FuzzServerName(f *testing.F) {
	f.Add(clientHello(f, "example.org"))
	f.Add([]byte("\x16\x03\x01\x00\x04\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		name, err := serverName(data)
		if err != nil && name != "" {
			t.Errorf("got %q and %v", name, err)
		}
		if !bytes.Contains(data, []byte(name)) && len(data) < maxRecord {
			// A name can only be torn by the headers of records.
			if bytes.Count(data, []byte{recordHandshake, 3}) < 2 {
				t.Errorf("%q is not in the data", name)
			}
		}
	})
}
