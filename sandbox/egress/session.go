package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// session is the connection of one client, on which requests follow one
// another.
type session struct {
	proxy  *Proxy
	client Client
	limit  *limitedHeader
	in     *bufio.Reader
}

func newSession(p *Proxy, c Client) *session {
	limit := &limitedHeader{r: c}
	return &session{proxy: p, client: c, limit: limit, in: bufio.NewReaderSize(limit, 16<<10)}
}

// limitedHeader refuses to read more than left bytes while it is bounded.
type limitedHeader struct {
	r       io.Reader
	left    int
	bounded bool
}

var errHeaderTooLarge = errors.New("the header is too large")

func (l *limitedHeader) Read(p []byte) (int, error) {
	if !l.bounded {
		return l.r.Read(p)
	}
	if l.left <= 0 {
		return 0, errHeaderTooLarge
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// serve answers requests until the connection ends or cannot be used again.
func (s *session) serve(ctx context.Context) {
	for first := true; ; first = false {
		limit := headerLimit
		if !first {
			limit = idleLimit
		}
		if !s.next(ctx, limit) {
			s.linger()
			return
		}
	}
}

// next answers one request; it reports whether another one may follow.
func (s *session) next(ctx context.Context, limit time.Duration) bool {
	s.limit.left, s.limit.bounded = headerBytes, true
	cut := time.AfterFunc(limit, func() { _ = s.client.Close() })
	defer cut.Stop()
	start, err := s.in.Peek(1)
	if err != nil {
		return false
	}
	if start[0] == socksVersion {
		t, err := readSocks(s.in, s.client)
		cut.Stop()
		s.limit.bounded = false
		if err != nil {
			return false // and answered
		}
		s.tunnel(ctx, t, socksAnswers{})
		return false
	}
	req, err := http.ReadRequest(s.in)
	cut.Stop()
	s.limit.bounded = false
	if err != nil {
		s.refuseRequest(err)
		return false
	}
	return s.request(ctx, req)
}

// refuseRequest answers what is no request.
func (s *session) refuseRequest(err error) {
	switch {
	case errors.Is(err, errHeaderTooLarge):
		s.answer(http.StatusRequestHeaderFieldsTooLarge, errHeaderTooLarge.Error())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return
	default:
		s.answer(http.StatusBadRequest, "this is no HTTP request that a proxy understands: "+clip(err.Error()))
	}
}

func (s *session) request(ctx context.Context, req *http.Request) bool {
	t, err := targetOf(req)
	if err != nil {
		s.answer(http.StatusBadRequest, err.Error())
		return false
	}
	if req.Method == http.MethodConnect {
		s.tunnel(ctx, t, s)
		return false
	}
	return s.forward(ctx, t, req)
}

// targetOf is where a request to a proxy leads (RFC 9112, sections 3.2.2 and
// 3.2.3). A Host header decides nothing.
func targetOf(req *http.Request) (target, error) {
	if req.Method == http.MethodConnect {
		if req.URL.Path != "" || req.URL.User != nil {
			return target{}, fmt.Errorf("CONNECT %q: want HOST:PORT", clip(req.RequestURI))
		}
		return parseTarget(req.URL.Host, 0)
	}
	switch strings.ToLower(req.URL.Scheme) {
	case "http":
		return parseTarget(req.URL.Host, 80)
	case "":
		return target{}, errors.New("this is proctor's egress proxy: it wants CONNECT, or a whole URL as the request's target")
	}
	return target{}, fmt.Errorf("scheme %q: the proxy forwards http, and tunnels the rest with CONNECT", clip(req.URL.Scheme))
}

// answer writes an answer of the proxy itself, after which the connection is
// closed.
func (s *session) answer(code int, text string) {
	text = "proctor: " + text + "\n"
	// When the client is gone there is nobody to tell.
	_, _ = fmt.Fprintf(s.client, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		code, http.StatusText(code), len(text), text)
}

// linger ends the connection in a way that lets the client read the last
// answer, although it may still be sending.
func (s *session) linger() {
	if s.client.CloseWrite() != nil {
		return
	}
	cut := time.AfterFunc(lingerLimit, func() { _ = s.client.Close() })
	defer cut.Stop()
	_, _ = io.CopyN(io.Discard, s.in, 1<<20)
}

// denial says why a host is not reached, and who decides about it.
func (p *Proxy) denial(v *visit) string {
	return fmt.Sprintf("access to host %q is denied: %s. The task's network_mode (%s) and allowed_hosts decide which hosts can be reached.",
		v.host, v.reason, p.mode())
}

// The session's own answers to CONNECT.

func (s *session) denied(v *visit) { s.answer(http.StatusForbidden, s.proxy.denial(v)) }

func (s *session) failed(_ *visit, err error) { s.answer(http.StatusBadGateway, err.Error()) }

func (s *session) connected() error {
	_, err := io.WriteString(s.client, "HTTP/1.1 200 Connection Established\r\n\r\n")
	if err != nil {
		return fmt.Errorf("answering the client: %w", err)
	}
	return nil
}
