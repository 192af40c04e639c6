package fake_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// The ability Listener of package egress.
var _ interface {
	Listen(ctx context.Context) (net.Listener, error)
} = (*fake.Sandbox)(nil)

func listen(t testing.TB, sb *fake.Sandbox) net.Listener {
	t.Helper()
	l, err := sb.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestACommandReachesAServer(t *testing.T) {
	t.Parallel()
	b := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{fake.On("curl", func(ctx context.Context, p *fake.Process) (int, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Env["URL"], nil)
		if err != nil {
			return 0, err
		}
		resp, err := new(http.Transport).RoundTrip(req)
		if err != nil {
			return 7, nil
		}
		defer func() { _ = resp.Body.Close() }()
		_, err = io.Copy(p.Stdout, resp.Body)
		return 0, err
	})}})
	sb := create(t, b, sandbox.Spec{Name: "t"})
	l := listen(t, sb)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "answer") })}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	var out strings.Builder
	cmd := sandbox.Command{Shell: "curl", Env: []string{"URL=http://" + l.Addr().String()}, Stdout: &out}
	if st, err := sb.Exec(t.Context(), cmd); err != nil || st.Code != 0 || out.String() != "answer" {
		t.Errorf("got %+v, %v, output %q", st, err, out.String())
	}
	if b.Count(fake.OpListen) != 1 {
		t.Errorf("%d calls of Listen are recorded", b.Count(fake.OpListen))
	}
	if err := sb.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: got %v, want net.ErrClosed", err)
	}
	fake.Verify(t, b)
}

func TestAnOlderMarkEndsAListener(t *testing.T) {
	t.Parallel()
	b := fake.New(fake.Config{Dir: t.TempDir()})
	sb := create(t, b, sandbox.Spec{Name: "t"})
	mark, err := sb.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, sb)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	if err := sb.KillTree(t.Context(), mark, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: got %v, want net.ErrClosed", err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("its connection is open")
	}
}
