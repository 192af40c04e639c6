package mcp

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube"
)

// listens is a request that is answered when its connection ends.
const listens = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{}}}}`

// listening is a connection to a server, on which a client listens.
func listening(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\nContent-Length: %d\r\n\r\n%s", len(listens), listens)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	return c
}

// TestListenersEnd: requests that are open for as long as a client listens take their places, and
// end with it, or with the server.
func TestListenersEnd(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"client", "server"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			p := NewPlayer(Options{Name: "x", Version: "1"})
			go func() { _, _ = p.Act(t.Context(), cube.Observe(cube.Text("Go.")), nil) }()
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := p.HTTPServer("/x")
			go func() { _ = server.Serve(l) }()
			t.Cleanup(func() { _ = server.Close() })
			var conns []net.Conn
			for range maxRequests {
				conns = append(conns, listening(t, l.Addr().String()))
			}
			if end == "client" {
				for _, c := range conns {
					_ = c.Close()
				}
			} else if err := server.Close(); err != nil {
				t.Fatal(err)
			}
			for range maxRequests { // as soon as they have ended
				select {
				case p.slots <- struct{}{}:
				case <-t.Context().Done():
				}
			}
		})
	}
}
