package httpserver_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/httpserver"
)

// TestNew: a header that is too large is refused, and what a handler panics with is printed
// nowhere.
func TestNew(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httpserver.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panic" {
			panic("secret")
		}
		_, _ = io.WriteString(w, "served")
	}))
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	get := func(path, header string) (status int, body string, err error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Long", header)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = res.Body.Close() }()
		var text bytes.Buffer
		_, err = text.ReadFrom(res.Body)
		return res.StatusCode, text.String(), err
	}
	if status, body, err := get("/", "short"); err != nil || status != http.StatusOK || body != "served" {
		t.Errorf("status %d, %q, %v", status, body, err)
	}
	if status, _, err := get("/", strings.Repeat("x", 128<<10)); err == nil && status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a large header: status %d", status)
	}
	if _, _, err := get("/panic", ""); err == nil {
		t.Error("a request whose handler panics was answered")
	}
	if _, err := s.ErrorLog.Writer().Write([]byte("nowhere")); err != nil || s.ErrorLog.Writer() != io.Discard {
		t.Errorf("the log goes to %v, %v", s.ErrorLog.Writer(), err)
	}
	if s.ReadHeaderTimeout <= 0 || s.IdleTimeout <= 0 {
		t.Errorf("times %v and %v", s.ReadHeaderTimeout, s.IdleTimeout)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != http.ErrServerClosed { //nolint:errorlint // it is documented to be this very one
		t.Errorf("served: %v", err)
	}
}
