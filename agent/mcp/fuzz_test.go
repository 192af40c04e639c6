package mcp_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube"
)

// FuzzArguments: whatever a client sends as the arguments of a call, it is answered, and
// only an object that fits becomes an action.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{"to":"door"}`, `{}`, `null`, `[]`, `"x"`, `1e999`, `{"to":1,"to":2}`, `{"to":{"a":[1,-0,1.5e3]}}`, `{"how":1,"to":""}`,
		`{"to":"\ud800"}`, strings.Repeat("[", 2000), `{"to":` + strings.Repeat("9", 5000) + `}`, `{"to":"\u0000"},"name":"look"`,
	} {
		f.Add(seed)
	}
	g := start(f, nil)
	handler := g.Handler()
	f.Fuzz(func(t *testing.T, args string) {
		before := len(g.done())
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"walk","arguments":` + args + `}}`
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		acted := g.done()[before:]
		var answer struct {
			Result *struct {
				Content []struct{ Text string }
				IsError bool
			}
			Error *struct{ Message string }
		}
		if !json.Valid([]byte(args)) {
			return // it may have closed what stands around it, and have been any request
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
			if len(acted) > 0 || len(args) < 900 { // what nests deeper is refused as a whole
				t.Fatalf("status %d, acted %q: %s", w.Code, acted, w.Body)
			}
			return
		}
		done := answer.Result != nil && !answer.Result.IsError
		switch {
		case answer.Result == nil && answer.Error == nil:
			t.Fatalf("no answer: %s", w.Body)
		case done != (len(acted) == 1) || len(acted) > 1:
			t.Fatalf("done %v, but acted %q: %s", done, acted, w.Body)
		}
		read, err := cube.ReadArguments(args)
		if fits := err == nil && read.Has("to"); done && !fits {
			t.Fatalf("%q was done: %q", args, acted)
		}
	})
}

// FuzzLines: whatever a client writes, serving it ends when it hangs up, and it is written
// nothing but messages.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		"", "garbage\n\n[]", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` +
			"\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + callLine(2, "look", "{}") + "\n" + callLine(2, "look", "{}"),
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta(modern) + `}}`,
		`{"jsonrpc":"2.0","id":"x","method":"prompts/get","params":{"name":"task",` + meta(modern) + `}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		p := newPlayer()
		p.End(nil)
		var out bytes.Buffer
		if err := p.ServeStdio(t.Context(), bytes.NewReader(lines), &out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) || !strings.Contains(line, `"jsonrpc":"2.0"`) {
				t.Fatalf("wrote %q", line)
			}
		}
	})
}
