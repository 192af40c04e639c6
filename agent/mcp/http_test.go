package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
)

// reply is an answer by HTTP.
type reply struct {
	status int
	kind   string // of content
	body   map[string]any
	text   string
}

// post sends a message to a server, with headers as pairs.
func post(t testing.TB, url, body string, headers ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return send(t, req)
}

func send(t testing.TB, req *http.Request) reply {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	r := reply{status: res.StatusCode, kind: res.Header.Get("Content-Type"), text: string(data)}
	if r.kind == "application/json" && data[0] == '{' {
		if err := json.Unmarshal(data, &r.body); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
	}
	return r
}

// at is what lies in an answer below keys, which are divided by points.
func (r reply) at(path string) any {
	var v any = r.body
	for key := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// has fails where an answer is not as wanted: its status, and pairs of a path and a value.
func (r reply) has(t testing.TB, status int, pairs ...any) {
	t.Helper()
	if r.status != status {
		t.Errorf("status %d, want %d: %s", r.status, status, r.text)
	}
	for i := 0; i < len(pairs); i += 2 {
		if diff := cmp.Diff(pairs[i+1], r.at(pairs[i].(string))); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", pairs[i], diff, r.text)
		}
	}
}

func serve(t testing.TB, g *game) string {
	t.Helper()
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	return server.URL + "/secret/mcp"
}

// TestLegacyHTTP: requests as clients before 2026 send them.
func TestLegacyHTTP(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2024-11-05", "2025-03-26", legacy, "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g := start(t, nil)
			url := serve(t, g)
			post(t, url, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`).
				has(t, 200, "id", 1.0, "result.protocolVersion", version, "result.serverInfo", map[string]any{"name": "game", "version": "7"},
					"result.instructions", "Find the door.", "result.capabilities.tools", map[string]any{"listChanged": true})
			h := []string{"MCP-Protocol-Version", version}
			if r := post(t, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, h...); r.status != 202 || r.text != "" {
				t.Errorf("a notification: %+v", r)
			}
			post(t, url, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, h...).
				has(t, 200, "result.tools.0.name", "walk", "result.tools.1.name", "look", "result.tools.2.name", cube.StopName,
					"result.tools.1.inputSchema", map[string]any{"type": "object", "properties": map[string]any{}},
					"result.tools.0.inputSchema.required", []any{"to"})
			post(t, url, `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"walk","arguments":{"to":"door"}}}`, h...).
				has(t, 200, "id", "x", "result.content", []any{map[string]any{"type": "text", "text": "did walk{'to': 'door'}"}})
			post(t, url, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fly"}}`, h...).
				has(t, 200, "id", 3.0, "error.code", -32602.0)
			post(t, url, `{"jsonrpc":"2.0","id":4,"method":"no/such"}`, h...).has(t, 200, "id", 4.0, "error.code", -32601.0)
			post(t, url, `{"jsonrpc":"2.0","id":5,"method":"ping"}`, h...).has(t, 200, "result", map[string]any{})
			post(t, url, `{"jsonrpc":"2.0","id":6,"method":"resources/list"}`, h...).has(t, 200, "result.resources", []any{})
			post(t, url, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"look"}}`).
				has(t, 200, "result.content.0.text", "did look{}") // the header may be missing
		})
	}
}

// meta is what a request of the newest revision has besides its parameters.
func meta(version string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientCapabilities":{}}`
}

// TestModernHTTP: requests of the newest revision, each of which stands for itself.
func TestModernHTTP(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	url := serve(t, g)
	request := func(method, params string, headers ...string) reply {
		t.Helper()
		if params != "" {
			params += ","
		}
		return post(t, url, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+meta(modern)+`}}`,
			append([]string{"MCP-Protocol-Version", modern, "Mcp-Method", method}, headers...)...)
	}
	versions := []any{modern, "2025-11-25", legacy, "2025-03-26", "2024-11-05"}
	request("server/discover", "").has(t, 200, "result.supportedVersions", versions, "result.resultType", "complete",
		"result.instructions", "Find the door.", "result.cacheScope", "private", "result.ttlMs", 0.0,
		"result.capabilities", map[string]any{"tools": map[string]any{"listChanged": true}, "prompts": map[string]any{}})
	request("tools/list", "").has(t, 200, "result.resultType", "complete", "result.cacheScope", "private", "result.ttlMs", 0.0,
		"result.tools.0.name", "walk", "result.tools.2.name", cube.StopName)
	request("tools/call", `"name":"look"`, "Mcp-Name", "look").
		has(t, 200, "result.resultType", "complete", "result.content.0.text", "did look{}")
	request("prompts/get", `"name":"task"`, "Mcp-Name", "task").
		has(t, 200, "result.resultType", "complete", "result.messages.0.content.text", "Find the door.")
	request("tools/call", `"name":"fly"`, "Mcp-Name", "fly").has(t, 400, "error.code", -32602.0)
	request("no/such", "").has(t, 404, "error.code", -32601.0)
	request("ping", "").has(t, 404, "error.code", -32601.0)
	// What headers and body say must agree.
	request("tools/call", `"name":"look"`, "Mcp-Name", "walk").has(t, 400, "error.code", -32020.0)
	request("tools/call", `"name":"look"`).has(t, 400, "error.code", -32020.0)
	request("tools/list", "", "Mcp-Method", "tools/call").has(t, 400, "error.code", -32020.0)
	request("tools/list", "", "MCP-Protocol-Version", "2025-11-25").has(t, 400, "error.code", -32020.0)
	request("tools/list", "", "MCP-Protocol-Version", "1900-01-01").
		has(t, 400, "id", 1.0, "error.code", -32022.0, "error.data.supported", versions, "error.data.requested", "1900-01-01")
	for _, version := range []string{"1900-01-01", "2999-01-01"} {
		post(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta(version)+`}}`,
			"MCP-Protocol-Version", version, "Mcp-Method", "tools/list").
			has(t, 400, "id", 1.0, "error.code", -32022.0, "error.data.supported", versions, "error.data.requested", version)
	}
	if got := g.done(); len(got) != 1 {
		t.Errorf("actions %q", got)
	}
}

// TestHTTPBounds: what is refused before it is read as a message.
func TestHTTPBounds(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	url := serve(t, g)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut, http.MethodOptions} {
		req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		if r := send(t, req); r.status != 405 {
			t.Errorf("%s: %+v", method, r)
		}
	}
	for origin, status := range map[string]int{
		"https://example.com": 403, "null": 403, "http://localhost.example.com": 403, "http://10.0.0.1": 403, "%": 403, "file://": 403,
		"http://localhost:3000": 200, "http://127.0.0.1": 200, "http://[::1]:80": 200, "https://127.8.9.1:1": 200,
	} {
		if r := post(t, url, list, "Origin", origin); r.status != status {
			t.Errorf("Origin %s: %+v", origin, r)
		}
	}
	for body, status := range map[string]int{
		"": 400, "{": 400, "[]": 400, "null": 400, `"x"`: 400, `{"jsonrpc":"1.0","id":1,"method":"tools/list"}`: 400,
		`{"jsonrpc":"2.0","id":{},"method":"tools/list"}`: 400, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`: 400,
		`[` + list + `,` + list + `]`:                                               400,
		`{"jsonrpc":"2.0","id":1,"params":` + strings.Repeat("[", 4<<20-100):        400,
		`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 4<<20) + `"}`:    413,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":{}}}`:     200,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["look"]}}`: 200,
	} {
		r := post(t, url, body, "MCP-Protocol-Version", legacy)
		if r.status != status || status == 200 && r.at("error.code") != -32602.0 {
			t.Errorf("%.80s: %.300v", body, r)
		}
	}
	if r := post(t, url, `{"jsonrpc":"2.0","id":1,"result":{}}`); r.status != 202 { // answers nothing that was asked
		t.Errorf("an answer: %+v", r)
	}
	for _, id := range []string{`{}`, `[` + strings.Repeat("{},", 1000) + `{}]`, ` [1]`} {
		post(t, url, `{"jsonrpc":"2.0","method":"tools/list","id":`+id+`}`).has(t, 400, "error.code", -32600.0)
	}
	batch := "[" + strings.Repeat(list+",", 64) + list + "]"
	post(t, url, batch).has(t, 400, "error.code", -32600.0)
	if r := post(t, url, `[`+list+`,`+strings.Replace(list, "1", "2", 1)+`]`); r.status != 200 || strings.Count(r.text, `"final_step"`) != 2 {
		t.Errorf("a batch: %+v", r)
	}
	if r := post(t, url, list, "Content-Type", "text/plain"); r.status != 415 {
		t.Errorf("text: %+v", r)
	}
	if r := post(t, url, list, "Host", "evil.example.com"); r.status != 200 { // a header of that name is not the host
		t.Errorf("%+v", r)
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(list))
	req.RequestURI, req.Host = "", "evil.example.com"
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if r := send(t, req); r.status != 403 {
		t.Errorf("another host: %+v", r)
	}
	if got := g.done(); len(got) != 0 {
		t.Errorf("actions %q", got)
	}
}

// TestHTTPHangUp: a client that hangs up before its call was taken has nothing done; one
// whose call was taken does not stop it.
func TestHTTPHangUp(t *testing.T) {
	t.Parallel()
	for _, version := range []string{modern, legacy} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			acting, proceed := make(chan string), make(chan struct{})
			g := start(t, func(a cube.Action) (*cube.Observation, *cube.StepError) {
				acting <- describe(a)
				<-proceed
				return cube.Observe(), nil
			})
			came, returned := make(chan struct{}, 10), make(chan struct{}, 10)
			handler := g.Handler()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				came <- struct{}{}
				handler.ServeHTTP(w, r)
				returned <- struct{}{}
			}))
			t.Cleanup(server.Close)
			request := func(to string) (hangUp func()) {
				ctx, cancel := context.WithCancel(t.Context())
				params := `"name":"walk","arguments":{"to":"` + to + `"}`
				if version == modern {
					params += "," + meta(modern)
				}
				body := bytes.NewBufferString(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + params + `}}`)
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, body)
				if err != nil {
					t.Error(err)
				}
				for name, value := range map[string]string{
					"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
					"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "walk",
				} {
					req.Header.Set(name, value)
				}
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					if res, err := http.DefaultClient.Do(req); err == nil {
						_ = res.Body.Close()
						t.Error("there is an answer")
					}
				}()
				<-came
				return func() { cancel(); <-gone }
			}
			first := request("a")
			if got := <-acting; got != "walk{'to': 'a'}" {
				t.Errorf("first %s", got)
			}
			second := request("b")
			second() // while it waits, or before it came
			first()  // while it is done
			<-returned
			<-returned
			close(proceed)
			s := way{"http", version}.dial(t, g.Player, nil)
			done := make(chan string)
			go func() {
				text, _ := call(t, s, "walk", map[string]any{"to": "c"})
				done <- text
			}()
			if got := <-acting; got != "walk{'to': 'c'}" {
				t.Errorf("third %s", got)
			}
			<-done
		})
	}
}
