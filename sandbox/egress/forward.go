package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"strings"
	"time"
)

// forward sends a request with a whole URL to its host and the response back;
// it reports whether the client's connection can be used again. Each request
// has a connection of its own to the host.
func (s *session) forward(ctx context.Context, t target, req *http.Request) bool {
	v := s.proxy.decide(ctx, t)
	defer v.finish()
	var up *counted
	var err error
	if v.allowed {
		conn, dialErr := v.connect()
		up, _ = conn.(*counted)
		err = dialErr
	}
	switch {
	case !v.allowed:
		s.denied(v)
		return false
	case err != nil:
		s.failed(v, err)
		return false
	}
	idle := time.AfterFunc(idleLimit, func() { v.cancel(errIdle) })
	defer idle.Stop()
	closed := make(chan struct{})
	stop := context.AfterFunc(v.ctx, func() { //nolint:contextcheck // the visit ends with its own context
		defer close(closed)
		_ = up.Close()
		_ = s.client.Close()
	})
	again := s.exchange(v, up, req, func() { idle.Reset(idleLimit) })
	if !stop() {
		<-closed
		return false
	}
	return again
}

// exchange writes the request while it waits for the response, because a host
// may answer before it has read all.
func (s *session) exchange(v *visit, up *counted, req *http.Request, touch func()) bool {
	out, again := outgoing(req)
	if strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(s.client, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return false
		}
	}
	wrote := make(chan error, 1)
	go func() { // joined below
		w := bufio.NewWriter(touching{up, touch})
		err := out.Write(w)
		if err == nil {
			err = w.Flush()
		}
		wrote <- err
	}()
	resp, err := readResponse(touchingReader{up, touch}, req)
	if err != nil {
		v.reason = "reading the response: " + err.Error()
		s.failed(v, errors.New(v.reason))
		again = false
	} else {
		keep, err := writeResponse(touching{s.client, touch}, resp, req, again)
		_ = resp.Body.Close()
		again = again && keep && err == nil
	}
	// A request that is still being sent ends with the host's connection and
	// the client's data, or the time for it.
	_ = up.Close()
	if !again {
		_ = s.client.CloseWrite()
	}
	cut := time.AfterFunc(lingerLimit, func() { _ = s.client.Close() })
	err = <-wrote
	cut.Stop()
	return again && err == nil
}

type touching struct {
	io.Writer
	touch func()
}

func (t touching) Write(p []byte) (int, error) {
	t.touch()
	return t.Writer.Write(p)
}

type touchingReader struct {
	io.Reader
	touch func()
}

func (t touchingReader) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	t.touch()
	return n, err
}

// hopByHop are the headers that concern one connection (RFC 9110, section
// 7.6.1).
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func removeHopByHop(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
}

// outgoing is the request as the host gets it, and whether the client wants to
// go on with its connection afterwards.
func outgoing(req *http.Request) (out *http.Request, again bool) {
	again = !req.Close && req.ProtoAtLeast(1, 1) && !strings.EqualFold(req.Header.Get("Proxy-Connection"), "close")
	copied := *req
	copied.Header = req.Header.Clone()
	removeHopByHop(copied.Header)
	copied.Header.Del("Expect")
	if _, ok := copied.Header["User-Agent"]; !ok {
		copied.Header["User-Agent"] = []string{""} // none, instead of Go's
	}
	copied.Close = true // of the host's connection
	return &copied, again
}

// readResponse skips interim responses. The size of all headers is bounded.
func readResponse(from io.Reader, req *http.Request) (*http.Response, error) {
	limit := &limitedHeader{r: from, left: 4 * headerBytes, bounded: true}
	r := bufio.NewReader(limit)
	for {
		resp, err := http.ReadResponse(r, req)
		if err != nil {
			return nil, fmt.Errorf("its header: %w", err)
		}
		switch {
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the host switches protocols, which it was not asked for")
		case resp.StatusCode >= 200:
			limit.bounded = false
			return resp, nil
		}
	}
}

// writeResponse passes a response on as it comes. keep reports that the client
// sees its end without the end of the connection.
func writeResponse(w io.Writer, resp *http.Response, req *http.Request, again bool) (keep bool, err error) {
	h := resp.Header.Clone()
	removeHopByHop(h)
	h.Del("Content-Length")
	noBody := req.Method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
	chunked := false
	keep = true
	switch {
	case resp.ContentLength >= 0 && resp.StatusCode != http.StatusNoContent:
		h.Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	case noBody:
	case req.ProtoAtLeast(1, 1):
		h.Set("Transfer-Encoding", "chunked")
		chunked = true
	default:
		keep = false
	}
	if !keep || !again {
		h.Set("Connection", "close")
	}
	head := bufio.NewWriter(w)
	_, _ = fmt.Fprintf(head, "HTTP/1.1 %03d %s\r\n", resp.StatusCode, strings.TrimPrefix(resp.Status, strconv.Itoa(resp.StatusCode)+" "))
	_ = h.Write(head)
	_, _ = head.WriteString("\r\n")
	if err := head.Flush(); err != nil {
		return keep, fmt.Errorf("answering the client: %w", err)
	}
	switch {
	case noBody:
		return keep, nil
	case chunked:
		return keep, writeChunks(w, resp.Body)
	}
	return keep, copyAll(w, resp.Body, func() {})
}

// writeChunks passes a body of unknown length on (RFC 9112, section 7.1),
// without trailers.
func writeChunks(w io.Writer, body io.Reader) error {
	chunks := httputil.NewChunkedWriter(w)
	if err := copyAll(chunks, body, func() {}); err != nil {
		return err
	}
	if err := chunks.Close(); err != nil {
		return fmt.Errorf("ending the answer: %w", err)
	}
	if _, err := io.WriteString(w, "\r\n"); err != nil {
		return fmt.Errorf("ending the answer: %w", err)
	}
	return nil
}
