package egress

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
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
	for _, other := range []string{"GET / HTTP/1.1\r\n", "SSH-2.0-x\r\n", "\x16\x10", "\x13\x03", "\x19\x03", "\x80\x2e\x01\x03\x01"} {
		if name, err := serverName([]byte(other)); err != nil || name != "" {
			t.Errorf("%q: got %q, %v", other, name, err)
		}
	}
	if _, err := serverName([]byte("\x16\x03\x01\x00\x04\x01\xff\xff\xff")); !errors.Is(err, errLongHello) {
		t.Errorf("a huge hello: got %v", err)
	}
}

// edited is a ClientHello for evil.test whose extensions edit has changed; all
// lengths around them are right again.
func edited(t testing.TB, edit func(extensions []byte) []byte) []byte {
	t.Helper()
	body := clientHello(t, "evil.test")[recordHeader+messageHeader:]
	f := fields{data: body}
	f.take(2 + 32)
	f.take(f.uint(1))
	f.take(f.uint(2))
	f.take(f.uint(1))
	head := bytes.Clone(body[:len(body)-len(f.data)])
	ext := edit(f.sub(f.uint(2)).data)
	body = append(binary.BigEndian.AppendUint16(head, uint16(len(ext))), ext...)
	message := append([]byte{typeClientHello, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	return record(recordHandshake, message)
}

func record(typ byte, body []byte) []byte {
	return append([]byte{typ, 3, 1, byte(len(body) >> 8), byte(len(body))}, body...)
}

// sni is an extension with server names of a kind.
func sni(kind byte, names ...string) []byte {
	var list []byte
	for _, n := range names {
		list = append(binary.BigEndian.AppendUint16(append(list, kind), uint16(len(n))), n...)
	}
	out := binary.BigEndian.AppendUint16([]byte{0, extensionSNI}, uint16(len(list)+2))
	return append(binary.BigEndian.AppendUint16(out, uint16(len(list))), list...)
}

// disguised are forms of a ClientHello for evil.test in which its name was not
// seen, or another one.
func disguised(t testing.TB) map[string][]byte {
	t.Helper()
	whole := clientHello(t, "evil.test")
	body := whole[recordHeader:]
	empty := record(recordHandshake, nil)
	warning := record(21, []byte{1, 0})
	changeCipher := record(20, []byte{1})
	halves := func(between []byte) []byte {
		return slices.Concat(record(recordHandshake, body[:20]), between, record(recordHandshake, body[20:]))
	}
	oversized := slices.Concat(body, make([]byte, maxRecord))
	return map[string][]byte{
		"an empty record before":          slices.Concat(empty, whole),
		"an empty record inside":          halves(empty),
		"a warning before":                slices.Concat(warning, whole),
		"a warning inside":                halves(warning),
		"a change of ciphers before":      slices.Concat(changeCipher, whole),
		"a change of ciphers inside":      halves(changeCipher),
		"application data before":         slices.Concat(record(23, []byte("x")), whole),
		"a heartbeat before":              slices.Concat(record(24, []byte("x")), whole),
		"no record inside":                halves([]byte("GET / HTTP/1.1\r\n")),
		"another message before":          slices.Concat(record(recordHandshake, []byte{0, 0, 0, 0}), whole),
		"another message before, in one":  record(recordHandshake, slices.Concat([]byte{0, 0, 0, 0}, body)),
		"an oversized record":             record(recordHandshake, oversized),
		"two extensions":                  edited(t, func(e []byte) []byte { return slices.Concat(sni(0, "good.test"), e) }),
		"two extensions, the good last":   edited(t, func(e []byte) []byte { return slices.Concat(e, sni(0, "good.test")) }),
		"two names":                       edited(t, func([]byte) []byte { return sni(0, "good.test", "evil.test") }),
		"a kind of names that is unknown": edited(t, func([]byte) []byte { return sni(1, "evil.test") }),
		"no name in the list":             edited(t, func([]byte) []byte { return sni(0) }),
		"an empty name":                   edited(t, func([]byte) []byte { return sni(0, "") }),
		"more after the list":             edited(t, func([]byte) []byte { return []byte("\x00\x00\x00\x06\x00\x03\x00\x00\x00x") }),
		"a list that ends too early":      edited(t, func([]byte) []byte { return []byte("\x00\x00\x00\x05\x00\x09\x00\x00\x09evil.test") }),
		"an extension that is cut":        edited(t, func(e []byte) []byte { return append(e, 0, 99, 0, 9) }),
		"half an extension":               edited(t, func(e []byte) []byte { return append(e, 0) }),
		"bytes after the extensions":      record(recordHandshake, append([]byte{1, 0, body[2], body[3] + 1}, append(bytes.Clone(body[4:]), 0)...)),
		"a session id beyond the end":     record(recordHandshake, append(append([]byte{1, 0, 0, 35}, make([]byte, 34)...), 32)),
		"a hello without anything":        record(recordHandshake, []byte{1, 0, 0, 0}),
	}
}

// TestWhatCannotBeReadIsRefused: what begins like TLS goes on only with a name
// that is certain.
func TestWhatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	for what, data := range disguised(t) {
		if name, err := serverName(data); !errors.Is(err, errNoHello) || name != "" {
			t.Errorf("%s: got %q, %v", what, name, err)
		}
	}
	// Records of versions that there are not are read by some servers.
	for major := range byte(versionsEnd) {
		data := clientHello(t, "evil.test")
		data[1] = major
		if name, err := serverName(data); err != nil || name != "evil.test" {
			t.Errorf("version %d: got %q, %v", major, name, err)
		}
	}
	if name, err := serverName(edited(t, func([]byte) []byte { return nil })); err != nil || name != "" {
		t.Errorf("no extensions: got %q, %v", name, err)
	}
}

// TestDisguisedNamesAreDenied sends them through the proxy.
func TestDisguisedNamesAreDenied(t *testing.T) {
	t.Parallel()
	forms := disguised(t)
	forms["the beginning of a hello"] = clientHello(t, "evil.test")[:100]
	for what, data := range forms {
		var seen bytes.Buffer
		server, ended := listenOnce(t, &seen)
		w := newWorld()
		w.put("good.test", server)
		s := serve(t, allow("good.test"), w.upstream())
		c, code := s.connect(t, "good.test:443")
		if code != 200 {
			t.Fatalf("%s: got %d", what, code)
		}
		_, _ = c.Write(data)
		_ = c.Conn.(*net.TCPConn).CloseWrite()
		if got, _ := io.ReadAll(c); len(got) != 0 {
			t.Errorf("%s: answered %q", what, got)
		}
		<-ended
		if seen.Len() != 0 {
			t.Errorf("%s: the server was sent %d bytes", what, seen.Len())
		}
		if l := s.lines(t)[0]; l.Allowed || !strings.Contains(l.Reason, "begins like TLS") || l.BytesUp != 0 {
			t.Errorf("%s: the log says %+v", what, l)
		}
	}
}

// listenOnce keeps what one client sends to a server, until that ends.
func listenOnce(t testing.TB, into io.Writer) (addr string, ended chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(into, c)
		_ = c.Close()
	}()
	return l.Addr().String(), ended
}

// heard is what Go's TLS server takes for the server name in data; ok says that
// it came to read one, or that there is none.
func heard(data []byte) (name string, ok bool) {
	stop := errors.New("heard enough")
	cfg := &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name, ok = hello.ServerName, true
		return nil, stop
	}}
	_ = tls.Server(&replay{Reader: bytes.NewReader(data)}, cfg).Handshake()
	return name, ok
}

// replay is a connection on which one end has said all that it will.
type replay struct {
	net.Conn
	*bytes.Reader
}

func (r *replay) Read(b []byte) (int, error)  { return r.Reader.Read(b) }
func (r *replay) Write(b []byte) (int, error) { return len(b), nil }
func (r *replay) Close() error                { return nil }

func (r *replay) SetWriteDeadline(time.Time) error { return nil }

func FuzzServerName(f *testing.F) {
	f.Add(clientHello(f, "example.org"))
	f.Add([]byte("\x16\x03\x01\x00\x04\x01\x00\x00\x00"))
	for _, data := range disguised(f) {
		f.Add(data)
	}
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
		// Whatever a server hears is what was looked at, or it hears nothing.
		if said, ok := heard(data); ok && err == nil && said != name {
			t.Errorf("a server hears %q, the proxy %q", said, name)
		}
	})
}
