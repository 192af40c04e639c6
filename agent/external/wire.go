package external

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
)

// maxAsked is how many requests of an agent are carried out at once; what else it says
// waits.
const maxAsked = 32

// maxNoise is how many lines that are no messages are written down.
const maxNoise = 1000

// wire stands between a command that speaks JSON-RPC and the connection that understands
// it. What passes is written down. Lines that are too long, or no objects, are left out
// and counted; notifications of the agent are written down and go no further.
type wire struct {
	ctx   context.Context // ends the waiting
	log   *journal
	lines splitter

	toPeer   io.Writer      // the command's standard input
	received *io.PipeWriter // what the connection reads
	asked    chan struct{}  // the agent's requests under way

	mu      sync.Mutex // guards what follows
	pending map[string]bool
	dropped int  // lines
	acted   bool // the agent has called a tool, or asked for more than to read
	gone    bool // the command has ended
}

// rpc is what is looked at of a message.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Update struct {
			Kind string `json:"sessionUpdate"`
		} `json:"update"`
	} `json:"params"`
}

func newWire(ctx context.Context, log *journal, toPeer io.Writer) (_ *wire, received io.Reader) {
	r, w := io.Pipe()
	wr := &wire{ctx: ctx, log: log, toPeer: toPeer, received: w, asked: make(chan struct{}, maxAsked), pending: map[string]bool{}}
	wr.lines = splitter{each: wr.fromPeer, long: func() {
		if wr.drop() <= maxNoise {
			log.tooLong(fromAgent)
		}
	}}
	return wr, r
}

// sent is the end to which the connection writes, a message at a time.
func (w *wire) sent() io.Writer { return writerFunc(w.fromConnection) }

func (w *wire) fromConnection(line []byte) (int, error) {
	var m rpc
	if err := json.Unmarshal(line, &m); err != nil {
		return 0, err //nolint:wrapcheck // the connection's own line
	}
	w.log.add(fromProctor, line)
	switch {
	case m.Method == "": // an answer
		select {
		case <-w.asked:
		default:
		}
	case len(m.ID) > 0:
		w.mu.Lock()
		w.pending[string(m.ID)] = true
		w.mu.Unlock()
	}
	return w.toPeer.Write(line)
}

// parseRPC reads a message; ok is false for what is no object. Params of another shape are
// the connection's business.
func parseRPC(line []byte) (m rpc, ok bool) {
	if line[0] != '{' {
		return m, false
	}
	if json.Unmarshal(line, &m) != nil {
		var plain struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(line, &plain) != nil {
			return m, false
		}
		m = rpc{ID: plain.ID, Method: plain.Method}
	}
	m.ID = bytes.TrimSpace(m.ID)
	return m, true
}

// fromPeer takes a line of the command. It waits while too much is under way.
func (w *wire) fromPeer(line []byte) {
	m, ok := parseRPC(line)
	if !ok {
		if w.drop() <= maxNoise {
			w.log.add(fromAgent, line)
		}
		return
	}
	w.log.add(fromAgent, line)
	asks := len(m.ID) > 0 && string(m.ID) != "null"
	w.noteAct(m)
	switch {
	case m.Method != "" && asks:
		select {
		case w.asked <- struct{}{}:
		case <-w.ctx.Done():
			return
		}
	case m.Method == "$/cancel_request":
	case m.Method != "" || !asks:
		return
	}
	if _, err := w.received.Write(append(line, '\n')); err != nil {
		return
	}
	if m.Method == "" {
		w.mu.Lock()
		delete(w.pending, string(m.ID))
		w.mu.Unlock()
	}
}

func (w *wire) noteAct(m rpc) {
	if m.Method == "terminal/create" || m.Method == "fs/write_text_file" || strings.HasPrefix(m.Params.Update.Kind, "tool_call") {
		w.mu.Lock()
		w.acted = true
		w.mu.Unlock()
	}
}

// drop counts a line that is left out, and returns how many there are.
func (w *wire) drop() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped++
	return w.dropped
}

// counts returns how many lines were no messages, and whether the agent did anything.
func (w *wire) counts() (dropped int, acted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped, w.acted
}

// ended tells the connection that the command is gone, where it still waits for an answer:
// one that has come is not to be lost, although the connection may not have seen to it.
// hangUp ends what is sent to the command.
func (w *wire) ended(hangUp func()) {
	w.lines.finish()
	w.mu.Lock()
	w.gone = true
	waits := len(w.pending) > 0
	w.mu.Unlock()
	hangUp()
	if waits {
		_ = w.received.Close()
	}
}

// hungUp reports whether the command ended before it answered a request.
func (w *wire) hungUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone && len(w.pending) > 0
}
