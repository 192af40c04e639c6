package mcp

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/proctor-run/proctor/cube"
)

// TestHold: a client that waits is sent comments, and then its answer as an event, also
// where that is an error whose status it would otherwise have had.
func TestHold(t *testing.T) {
	t.Parallel()
	const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, c := range []struct{ version, meta, tool, want string }{
		{"2025-06-18", "", "look", `"content":[{"type":"text","text":"seen"}]`},
		{"2026-07-28", "," + modern, "look", `"content":[{"type":"text","text":"seen"}]`},
		{"2025-06-18", "", "fly", `"code":-32602`},
		{"2026-07-28", "," + modern, "fly", `"code":-32602`},
	} {
		t.Run(c.version+c.tool, func(t *testing.T) {
			t.Parallel()
			p := NewPlayer(Options{})
			p.silence = time.Millisecond
			server := httptest.NewServer(p.Handler())
			t.Cleanup(server.Close)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL,
				strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+c.tool+`"`+c.meta+`}}`))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{
				"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
				"MCP-Protocol-Version": c.version, "Mcp-Method": "tools/call", "Mcp-Name": c.tool,
			} {
				req.Header.Set(name, value)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
				t.Errorf("status %d, %v", res.StatusCode, res.Header)
			}
			lines := bufio.NewScanner(res.Body)
			for range 3 { // before anything has happened
				if !lines.Scan() || lines.Text() != ": waiting" || !lines.Scan() || lines.Text() != "" {
					t.Fatalf("%q, %v", lines.Text(), lines.Err())
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			go func() {
				look := []cube.ActionSchema{{Name: "look"}}
				_, _ = p.Act(ctx, cube.Observe(), look)
				_, _ = p.Act(ctx, cube.Observe(cube.Text("seen")), look)
			}()
			var events []string
			for lines.Scan() {
				if text := lines.Text(); text != ": waiting" && text != "" {
					events = append(events, text)
				}
			}
			if len(events) != 2 || events[0] != "event: message" || !strings.HasPrefix(events[1], `data: {"jsonrpc":"2.0","id":1,`) || !strings.Contains(events[1], c.want) {
				t.Errorf("events %q, want %s", events, c.want)
			}
		})
	}
}

// TestBusy: more requests than are served at once are refused.
func TestBusy(t *testing.T) {
	t.Parallel()
	p := NewPlayer(Options{})
	for range maxRequests {
		p.slots <- struct{}{}
	}
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("{}")))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d", w.Code)
	}
}

// TestLarge: large requests wait for each other, small ones for none.
func TestLarge(t *testing.T) {
	t.Parallel()
	p := NewPlayer(Options{})
	for range maxLarge {
		p.large <- struct{}{}
	}
	post := func(ctx context.Context, size int) int {
		w := httptest.NewRecorder()
		body := `{"jsonrpc":"2.0","id":1,"method":"no/such"}` + strings.Repeat(" ", size)
		p.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body)))
		return w.Code
	}
	if code := post(t.Context(), 0); code != http.StatusOK {
		t.Errorf("a small one: status %d", code)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if code := post(gone, smallMessage); code != http.StatusBadRequest {
		t.Errorf("a large one that gave up: status %d", code)
	}
	answered := make(chan int)
	go func() { answered <- post(t.Context(), smallMessage) }()
	<-p.large
	if code := <-answered; code != http.StatusOK {
		t.Errorf("a large one that waited: status %d", code)
	}
	if n := len(p.large); n != maxLarge-1 {
		t.Errorf("%d are being served", n)
	}
}

// TestProgress: a client that asked for progress is told that its call goes on.
func TestProgress(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"http", "stdio"} {
		for _, version := range []string{"2025-06-18", "2026-07-28"} {
			t.Run(name+"-"+version, func(t *testing.T) {
				t.Parallel()
				p := NewPlayer(Options{})
				p.silence = time.Millisecond
				told := make(chan float64, 1000)
				client := sdk.NewClient(&sdk.Implementation{}, &sdk.ClientOptions{
					ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
						if req.Params.ProgressToken != "token" {
							t.Errorf("token %v", req.Params.ProgressToken)
						}
						select {
						case told <- req.Params.Progress:
						default:
						}
					},
				})
				look := []cube.ActionSchema{{Name: "look"}}
				go func() {
					_, _ = p.Act(t.Context(), cube.Observe(), look)
					for want := 1.0; want < 4; want++ { // while the action is done
						if got := <-told; got != want {
							t.Errorf("progress %v, want %v", got, want)
						}
					}
					_, _ = p.Act(t.Context(), cube.Observe(cube.Text("seen")), look)
				}()
				s, err := client.Connect(t.Context(), transportTo(t, p, name), &sdk.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = s.Close() }()
				params := &sdk.CallToolParams{Name: "look"}
				params.SetProgressToken("token")
				res, err := s.CallTool(t.Context(), params)
				if err != nil || len(res.Content) != 1 || res.Content[0].(*sdk.TextContent).Text != "seen" {
					t.Errorf("%v, %v", res, err)
				}
			})
		}
	}
}

func transportTo(t *testing.T, p *Player, name string) sdk.Transport {
	t.Helper()
	if name == "http" {
		server := httptest.NewServer(p.Handler())
		t.Cleanup(server.Close)
		return &sdk.StreamableClientTransport{Endpoint: server.URL, DisableStandaloneSSE: true}
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	go func() { _ = p.ServeStdio(context.Background(), in, out) }()
	t.Cleanup(func() { _ = toServer.Close() })
	return &sdk.IOTransport{Reader: fromServer, Writer: toServer}
}
