package egress

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipeClient is a client's connection in memory.
type pipeClient struct{ net.Conn }

// CloseWrite ends the whole connection, which net.Pipe cannot do by halves.
func (c pipeClient) CloseWrite() error { return c.Close() }

// inBubble serves one client of a proxy whose hosts are in memory too.
// accepted receives the other ends of the connections to hosts.
func inBubble(log io.Writer) (p *Proxy, client net.Conn, accepted chan net.Conn, done chan struct{}) {
	accepted = make(chan net.Conn, 1)
	p = NewProxy(allow("good.test"), Upstream{
		Own: nowhere,
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("203.0.113.1")}, nil
		},
		Dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
			ours, theirs := net.Pipe()
			accepted <- theirs
			return ours, nil
		},
	}, log, nil)
	ours, theirs := net.Pipe()
	done = make(chan struct{})
	go func() {
		defer close(done)
		p.Serve(context.Background(), pipeClient{theirs})
	}()
	return p, ours, accepted, done
}

func TestAClientThatSaysNothingIsCutOff(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"", "GET http://good.test/ HTTP/1.1\r\nA: b"} {
		synctest.Test(t, func(t *testing.T) {
			p, client, _, done := inBubble(nil)
			start := time.Now()
			_, _ = io.WriteString(client, said)
			<-done
			if d := time.Since(start); d < headerLimit || d > headerLimit+lingerLimit {
				t.Errorf("after %q: cut off after %v, want %v", said, d, headerLimit)
			}
			p.Close()
		})
	}
}

func TestATunnelWithoutTrafficIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &lockedBuffer{}
		p, client, accepted, done := inBubble(log)
		_, _ = io.WriteString(client, "CONNECT good.test:443 HTTP/1.1\r\n\r\n")
		host := <-accepted
		answers := bufio.NewReader(client)
		resp, err := http.ReadResponse(answers, &http.Request{Method: http.MethodConnect})
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != 200 {
			t.Fatalf("got %v", resp.Status)
		}
		start := time.Now()
		for range 5 { // traffic in either direction keeps it open
			time.Sleep(idleLimit - time.Minute)
			_, _ = io.WriteString(host, "x")
			if _, err := answers.ReadByte(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(idleLimit - time.Minute)
			_, _ = io.WriteString(client, "y")
			if _, err := host.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		<-done
		if got, want := time.Since(start), 10*(idleLimit-time.Minute)+idleLimit; got != want {
			t.Errorf("closed after %v, want %v", got, want)
		}
		p.Close()
		var l Line
		if err := json.Unmarshal(log.Bytes(), &l); err != nil || !strings.HasSuffix(l.Reason, "; closed: "+errIdle.Error()) || l.BytesUp != 5 || l.BytesDown != 5 {
			t.Errorf("the log says %s, %v", log.Bytes(), err)
		}
	})
}

func TestAHostThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, client, accepted, done := inBubble(nil)
		_, _ = fmt.Fprint(client, "GET http://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n")
		host := <-accepted
		req, err := http.ReadRequest(bufio.NewReader(host))
		if err != nil || req.Host != "good.test" || req.URL.Path != "/" {
			t.Errorf("the host got %+v, %v", req, err)
		}
		start := time.Now()
		<-done
		if d := time.Since(start); d < idleLimit || d > idleLimit+lingerLimit {
			t.Errorf("given up after %v, want %v", d, idleLimit)
		}
		p.Close()
	})
}
