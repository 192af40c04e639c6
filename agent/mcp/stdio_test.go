package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/agent/mcp"
	"github.com/proctor-run/proctor/cube"
)

// lineClient is a client that writes lines by hand.
type lineClient struct {
	t      testing.TB
	in     *io.PipeWriter
	out    *bufio.Scanner
	served chan error // what ServeStdio returned
}

func newLineClient(t testing.TB, p *mcp.Player) *lineClient {
	t.Helper()
	in, write := io.Pipe()
	read, out := io.Pipe()
	c := &lineClient{t: t, in: write, out: bufio.NewScanner(read), served: make(chan error, 1)}
	c.out.Buffer(nil, 32<<20)
	go func() {
		c.served <- p.ServeStdio(context.Background(), in, out)
		_ = out.Close()
	}()
	t.Cleanup(func() {
		_ = write.Close()
		_ = read.Close()
	})
	return c
}

func (c *lineClient) write(lines ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, strings.Join(lines, "\n")+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// read reads one message.
func (c *lineClient) read() reply {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("the server has gone: %v", c.out.Err())
	}
	r := reply{status: 0, text: c.out.Text()}
	if err := json.Unmarshal(c.out.Bytes(), &r.body); err != nil {
		c.t.Fatalf("no message: %q", r.text)
	}
	return r
}

// ask writes a request and reads its answer.
func (c *lineClient) ask(line string) reply {
	c.t.Helper()
	c.write(line)
	return c.read()
}

func (c *lineClient) initialize() {
	c.t.Helper()
	c.ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`).
		has(c.t, 0, "result.protocolVersion", legacy, "result.instructions", "Find the door.")
	c.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// hangUp closes the input, after which the server must be gone.
func (c *lineClient) hangUp() {
	c.t.Helper()
	if err := c.in.Close(); err != nil {
		c.t.Fatal(err)
	}
	if err := <-c.served; err != nil {
		c.t.Errorf("served: %v", err)
	}
}

func callLine(id any, name, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%#v,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, args)
}

// TestLines: both eras by lines, and lines that are no messages.
func TestLines(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	c := newLineClient(t, g.Player)
	for line, code := range map[string]float64{
		"garbage": -32700, "{": -32700, "\xff\xfe": -32700, "[]": -32600, "null": -32600, "7": -32600, `{"id":1}`: -32600,
		`{"jsonrpc":"2.0","id":1,"params":` + strings.Repeat("[", 100_000): -32700,
		`{"jsonrpc":"2.0","id":[1],"method":"ping"}`:                       -32600,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`:                       -32600,
		strings.Repeat("x", 4<<20+1):                                       -32600,
	} {
		c.ask(line).has(t, 0, "id", nil, "error.code", code)
	}
	c.write("", "  ", "\r")
	c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta("1900-01-01")+`}}`).
		has(t, 0, "id", 1.0, "error.code", -32022.0, "error.data.requested", "1900-01-01")
	c.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{`+meta("2999-01-01")+`}}`).
		has(t, 0, "id", 2.0, "error.code", -32022.0, "error.data.supported.0", modern)
	c.ask(`{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{`+meta(modern)+`}}`+"\r").
		has(t, 0, "id", 3.0, "result.resultType", "complete", "result.instructions", "Find the door.")
	c.ask(`{"jsonrpc":"2.0","id":"four","method":"tools/call","params":{"name":"look",`+meta(modern)+`}}`).
		has(t, 0, "id", "four", "result.resultType", "complete", "result.content.0.text", "did look{}")
	c.ask(`{"jsonrpc":"2.0","id":5,"method":"no/such","params":{`+meta(modern)+`}}`).has(t, 0, "error.code", -32601.0)
	c.hangUp()

	c = newLineClient(t, g.Player)
	c.ask(callLine(1, "look", "{}")).has(t, 0, "id", 1.0, "result", nil) // not initialized
	c.initialize()
	c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).has(t, 0, "result.tools.0.name", "walk", "result.tools.2.name", cube.StopName)
	c.ask(callLine(2, "look", "{}")).has(t, 0, "id", 2.0, "result.content.0.text", "did look{}", "result.isError", nil)
	c.ask(callLine(3, "fly", "{}")).has(t, 0, "id", 3.0, "error.code", -32602.0)
	c.ask(`{"jsonrpc":"2.0","id":4,"method":"ping"}`).has(t, 0, "id", 4.0, "result", map[string]any{})
	c.ask(`{"jsonrpc":"2.0","id":5,"method":"no/such"}`).has(t, 0, "id", 5.0, "error.code", -32601.0)
	c.write(`{"jsonrpc":"2.0","id":1,"result":{}}`) // answers nothing that was asked
	c.ask(callLine(6, cube.StopName, "{}")).has(t, 0, "result.content.0.text", "Task finished by the agent.")
	c.ask(callLine(7, "look", "{}")).has(t, 0, "result.content.0.text", refused, "result.isError", true)
	c.hangUp()
	if diff := cmp.Diff([]string{"look{}", "look{}", "final_step{}"}, g.done()); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// TestLinesOrder: calls that are written one after the other are done in that order, and
// each has its own answer.
func TestLinesOrder(t *testing.T) {
	t.Parallel()
	for _, m := range []string{"", "," + meta(modern)} {
		t.Run(fmt.Sprintf("%.10s", m), func(t *testing.T) {
			t.Parallel()
			g := start(t, nil)
			c := newLineClient(t, g.Player)
			c.initialize()
			const rounds, calls = 20, 50
			var want []string
			for round := range rounds {
				var lines []string
				for i := range calls {
					n := round*calls + i + 1
					lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"walk","arguments":{"to":"%d"}%s}}`, n, n, m))
					want = append(want, fmt.Sprintf("walk{'to': '%d'}", n))
				}
				go c.write(lines...)
				for range calls {
					r := c.read()
					n, _ := r.at("id").(float64)
					r.has(t, 0, "result.content.0.text", fmt.Sprintf("did walk{'to': '%v'}", n))
				}
			}
			if got := g.done(); !slices.Equal(got, want) {
				t.Errorf("actions %q", got)
			}
			c.hangUp()
		})
	}
}

// TestLinesCancelled: a call that is cancelled while it waits is not done.
func TestLinesCancelled(t *testing.T) {
	t.Parallel()
	acting, proceed := make(chan string), make(chan struct{})
	g := start(t, func(a cube.Action) (*cube.Observation, *cube.StepError) {
		acting <- describe(a)
		<-proceed
		return cube.Observe(cube.Text("done")), nil
	})
	c := newLineClient(t, g.Player)
	c.initialize()
	c.write(callLine(1, "look", "{}"))
	<-acting
	c.write(callLine(2, "walk", `{"to":"b"}`), callLine(3, "look", "{}"))
	c.ask(callLine(3, "look", "{}")).has(t, 0, "id", nil, "error.code", -32600.0) // the same id
	c.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`).has(t, 0, "id", 2.0, "result", nil)
	// One that is being done is not stopped, and its answer is thrown away.
	c.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`).has(t, 0, "id", 1.0, "result", nil)
	proceed <- struct{}{}
	if got := <-acting; got != "look{}" {
		t.Errorf("next %s", got)
	}
	proceed <- struct{}{}
	c.read().has(t, 0, "id", 3.0, "result.content.0.text", "done")
	// A client that hangs up has what it asked for done all the same, and its answers.
	c.write(callLine(4, "look", "{}"))
	<-acting
	c.write(callLine(5, "look", "{}"))
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	proceed <- struct{}{}
	<-acting
	c.read().has(t, 0, "id", 4.0)
	proceed <- struct{}{}
	c.read().has(t, 0, "id", 5.0)
	c.hangUp()
	g.Leave(nil)
	if err := <-g.ended; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"look{}", "look{}", "look{}", "look{}"}, g.done()); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// TestLinesInOrder: calls are done in the order in which they came, also those that came
// before the client was initialized.
func TestLinesInOrder(t *testing.T) {
	t.Parallel()
	const calls = 50
	g := start(t, func(cube.Action) (*cube.Observation, *cube.StepError) { return cube.Observe(cube.Text("done")), nil })
	c := newLineClient(t, g.Player)
	lines, want := []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}, []string{}
	for n := range calls {
		args := fmt.Sprintf(`{"to":"%d"}`, n)
		lines, want = append(lines, callLine(n+1, "walk", args)), append(want, fmt.Sprintf("walk{'to': '%d'}", n))
	}
	go c.write(lines...)
	for range 1 + calls {
		c.read().has(t, 0, "error", nil)
	}
	c.hangUp()
	if diff := cmp.Diff(want, g.done()); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// TestLinesRefused: what waits when the agent leaves or the episode ends is refused, and
// the call that is being done has its answer of the end alone.
func TestLinesRefused(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*mcp.Player){
		"leave": func(p *mcp.Player) { p.Leave(nil) }, "end": func(p *mcp.Player) { p.End(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlayer()
			c := newLineClient(t, p)
			// One that does not wait for the task any longer.
			c.write(`{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{` + meta(modern) + `}}`)
			c.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`).has(t, 0, "id", "a", "result", nil)
			acting := make(chan struct{})
			go func() {
				defer close(acting)
				if actions, err := p.Act(t.Context(), nil, offered()); len(actions) != 1 || err != nil {
					t.Errorf("%v, %v", actions, err)
				}
			}()
			c.ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`).
				has(t, 0, "result.instructions", nil)
			c.write(callLine(1, "look", "{}"))
			<-acting
			c.write(callLine(2, "look", "{}"))
			c.ask(`{"jsonrpc":"2.0","id":3,"method":"ping"}`).has(t, 0, "id", 3.0) // the call before it has its place
			end(p)
			answers := map[any]any{}
			read := func() {
				r := c.read()
				answers[r.at("id")] = r.at("result.content.0.text")
			}
			read()
			if name == "leave" {
				if answers[2.0] != refused {
					t.Errorf("answers %v", answers)
				}
				p.End(nil)
			}
			read()
			if diff := cmp.Diff(map[any]any{1.0: "The task has ended.", 2.0: refused}, answers); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			c.hangUp()
		})
	}
}

// TestLinesBounds: more than what may wait is refused, and nothing is lost.
func TestLinesBounds(t *testing.T) {
	t.Parallel()
	acting, proceed := make(chan struct{}), make(chan struct{})
	g := start(t, func(cube.Action) (*cube.Observation, *cube.StepError) {
		select {
		case acting <- struct{}{}:
		case <-proceed:
		}
		<-proceed
		return cube.Observe(cube.Text("done")), nil
	})
	c := newLineClient(t, g.Player)
	c.initialize()
	c.write(callLine(1, "look", "{}"))
	<-acting
	for i := range 64 {
		c.write(callLine(i+2, "look", "{}"))
	}
	c.ask(callLine(66, "look", "{}")).has(t, 0, "id", 66.0, "result.isError", true,
		"result.content.0.text", "Not done: there are too many calls at once. At most 64 may wait for their turn.")
	close(proceed)
	for range 65 {
		c.read().has(t, 0, "result.content.0.text", "done")
	}
	c.hangUp()
}

// TestLinesUnread: requests that wait for a task that does not come are bounded.
func TestLinesUnread(t *testing.T) {
	t.Parallel()
	p := newPlayer()
	c := newLineClient(t, p)
	for i := range 128 {
		c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{%s}}`, i, meta(modern)))
	}
	c.ask(`{"jsonrpc":"2.0","id":128,"method":"tools/list","params":{`+meta(modern)+`}}`).has(t, 0, "id", 128.0, "error.code", -32000.0)
	p.End(nil)
	for range 128 {
		c.read().has(t, 0, "result.tools", []any{})
	}
	c.hangUp()
}

// TestLinesFlood: notifications that wait for a client's initialization are bounded.
func TestLinesFlood(t *testing.T) {
	t.Parallel()
	p := newPlayer()
	c := newLineClient(t, p)
	c.write(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	for range 1000 {
		c.write(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	}
	p.End(nil)
	c.read().has(t, 0, "id", 0.0, "result.protocolVersion", legacy)
	c.ask(`{"jsonrpc":"2.0","id":1,"method":"ping"}`).has(t, 0, "id", 1.0)
	c.hangUp()
}

// stuck is a stream that neither gives nor takes anything.
type stuck struct{ asked chan struct{} }

func (s stuck) Read([]byte) (int, error)  { return s.wait() }
func (s stuck) Write([]byte) (int, error) { return s.wait() }

func (s stuck) wait() (int, error) {
	close(s.asked)
	select {}
}

// TestLinesStuck: the end of the context is the end of serving, whatever the streams do.
func TestLinesStuck(t *testing.T) {
	t.Parallel()
	serve := func(in io.Reader, out io.Writer, when <-chan struct{}) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-when
			cancel(errGone)
		}()
		if err := newPlayer().ServeStdio(ctx, in, out); !errors.Is(err, errGone) {
			t.Errorf("served: %v", err)
		}
	}
	in, out := stuck{make(chan struct{})}, stuck{make(chan struct{})}
	serve(in, io.Discard, in.asked)
	serve(strings.NewReader("garbage\n"), out, out.asked)
	// A request that waits for the task.
	read, write := io.Pipe()
	wrote := make(chan struct{})
	go func() {
		_, _ = io.WriteString(write, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta(modern)+`}}`+"\n\n")
		close(wrote)
	}()
	serve(read, io.Discard, wrote)
}

// broken fails at once.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error)  { return 0, b.err }
func (b broken) Write([]byte) (int, error) { return 0, b.err }

// TestLinesBroken: a stream that breaks is an error, one that nobody holds is none.
func TestLinesBroken(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	t.Cleanup(func() { _ = write.Close() })
	lines := func() io.Reader { return io.MultiReader(strings.NewReader("garbage\n"), read) } // which does not end
	for _, c := range []struct {
		in   io.Reader
		out  io.Writer
		want string
	}{
		{broken{errGone}, io.Discard, "reading what the client sends: the agent is gone"},
		{broken{io.EOF}, io.Discard, "<nil>"},
		{broken{io.ErrClosedPipe}, io.Discard, "<nil>"},
		{lines(), broken{errGone}, "writing to the client: the agent is gone"},
		{lines(), broken{io.ErrClosedPipe}, "<nil>"},
	} {
		if err := newPlayer().ServeStdio(t.Context(), c.in, c.out); fmt.Sprint(err) != c.want {
			t.Errorf("served: %v, want %s", err, c.want)
		}
	}
}
