package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStdio serves one client by lines of JSON, until it hangs up: in ends and what came
// before is answered, or out takes nothing any more. It then returns nil. When ctx ends it
// returns the cause, also while in has nothing to read or out takes nothing; the goroutine
// that reads or writes then stays until that is done, so that in and out should be of no
// other use, and an answer that is on its way may be lost. Nothing but messages is written
// to out. Lines that are no message are answered with an error.
//
// Several clients may be served at once. It goes on serving when the episode has ended,
// and the client is refused every call. The player is not left when it returns: whoever
// serves the only client calls [Player.Leave].
func (p *Player) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	c := newWire()
	go c.readLines(bufio.NewReaderSize(in, 64<<10))
	go c.writeLines(out)
	stop := context.AfterFunc(ctx, func() { c.stop(context.Cause(ctx)) })
	defer stop()
	s, err := p.server.Connect(context.WithValue(ctx, wireKey{}, c), c, nil)
	if err != nil {
		c.stop(err)
		return fmt.Errorf("serving the client: %w", err)
	}
	_ = s.Wait() // the wire knows better why it ended
	c.stop(nil)
	return c.end()
}

// maxOpen bounds the requests by lines that are not answered: every call that may wait,
// and as many others.
const maxOpen = 2 * maxCalls

// wire is the connection of a client that writes lines. It takes the place of the kit's
// own, which ends at the first line that is no message, and lets calls overtake each
// other.
type wire struct {
	lines  chan []byte   // what was read; nil is a line that is too long
	ended  chan struct{} // closed when nothing more is read
	writes chan write
	closed chan struct{}
	// answered has something when a request may have been answered.
	answered chan struct{}

	mu        sync.Mutex
	stopped   bool
	cause     error // why it was stopped
	readErr   error
	open      map[jsonrpc.ID]bool // the requests that are not answered; true is one that holds up those after it
	answering int                 // the answers that are being written
	endless   map[jsonrpc.ID]bool // of open, those that are answered when the connection ends
	loose     int                 // the notifications since something has been held up
	// next is the call of a tool that has no place in the queue yet; placed is closed when
	// it has.
	next   jsonrpc.ID
	placed chan struct{}
}

// write is a message on its way out.
type write struct {
	line []byte
	done chan error
}

func newWire() *wire {
	return &wire{
		lines: make(chan []byte), ended: make(chan struct{}), writes: make(chan write), closed: make(chan struct{}),
		answered: make(chan struct{}, 1), open: map[jsonrpc.ID]bool{}, endless: map[jsonrpc.ID]bool{},
	}
}

// stop ends the connection, for a reason or none. The first counts.
func (c *wire) stop(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.stopped, c.cause = true, cause
		close(c.closed)
	}
}

// end says why the connection ended, nil where the client hung up.
func (c *wire) end() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return c.cause
	}
	return c.readErr
}

// readLines reads until the client hangs up.
func (c *wire) readLines(r *bufio.Reader) {
	defer close(c.ended)
	for {
		line, err := readLine(r)
		if line == nil || len(bytes.TrimSpace(line)) > 0 {
			select {
			case c.lines <- line:
			case <-c.closed:
				return
			}
		}
		if err == nil {
			continue
		}
		if !hungUp(err) {
			c.mu.Lock()
			c.readErr = fmt.Errorf("reading what the client sends: %w", err)
			c.mu.Unlock()
		}
		return
	}
}

// readLine reads a line without its end; nil is one that is longer than a message may be.
// What there is before an error is a line, too.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, tooLong := []byte{}, false
	for {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > maxMessage; !tooLong {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if tooLong {
			line = nil
		}
		return line, err //nolint:wrapcheck // it stands around a stream
	}
}

// hungUp reports whether an error of a stream says that there is nobody at its other end.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE)
}

// writeLines writes until the connection is closed.
func (c *wire) writeLines(out io.Writer) {
	for {
		select {
		case w := <-c.writes:
			_, err := out.Write(w.line)
			if err == nil {
				w.done <- nil
				continue
			}
			cause := fmt.Errorf("writing to the client: %w", err)
			if hungUp(err) {
				cause = nil
			}
			c.stop(cause) // before who writes knows of it and closes the connection
			w.done <- err
			return
		case <-c.closed:
			return
		}
	}
}

// Connect returns the wire, which is the transport of one connection.
func (c *wire) Connect(context.Context) (sdk.Connection, error) { return c, nil }

// SessionID is "": there is one session.
func (c *wire) SessionID() string { return "" }

// Close ends the connection.
func (c *wire) Close() error {
	c.stop(nil)
	return nil
}

// Read returns the next message.
func (c *wire) Read(context.Context) (jsonrpc.Message, error) {
	if err := c.awaitPlaced(); err != nil {
		return nil, err
	}
	for {
		select {
		case line := <-c.lines:
			if msg := c.accept(line); msg != nil {
				return msg, nil
			}
		case <-c.ended:
			c.awaitAnswers()
			return nil, io.EOF
		case <-c.closed:
			return nil, io.EOF
		}
	}
}

// awaitAnswers waits until every request is answered: a client may send all that it has to
// say, hang up and read then.
func (c *wire) awaitAnswers() {
	for {
		c.mu.Lock()
		open := len(c.open) - len(c.endless) + c.answering
		c.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-c.answered:
		case <-c.closed:
			return
		}
	}
}

// awaitPlaced waits until the call that was read last has its place: requests are handled
// at once, and the next would overtake it otherwise.
func (c *wire) awaitPlaced() error {
	c.mu.Lock()
	placed := c.placed
	c.mu.Unlock()
	if placed == nil {
		return nil
	}
	select {
	case <-placed:
	case <-c.closed:
		return io.EOF
	}
	return nil
}

// place says that the call that was read last has its place.
func (c *wire) place() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.placeNext()
}

func (c *wire) placeNext() {
	if c.placed != nil {
		close(c.placed)
		c.next, c.placed = jsonrpc.ID{}, nil
	}
}

type wireKey struct{}

// arrival is to be called when a call has its place.
func arrival(ctx context.Context) func() {
	if c, ok := ctx.Value(wireKey{}).(*wire); ok {
		return c.place
	}
	return func() {}
}

// accept makes a message of a line; one that cannot be accepted is answered, and nil.
func (c *wire) accept(line []byte) jsonrpc.Message {
	if line == nil {
		c.refuse(jsonrpc.ID{}, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message has at most %d bytes", maxMessage))
		return nil
	}
	msg, err := jsonrpc.DecodeMessage(line)
	switch {
	case err == nil:
	case json.Valid(line):
		c.refuse(jsonrpc.ID{}, jsonrpc.CodeInvalidRequest, "this is not a request")
		return nil
	default:
		c.refuse(jsonrpc.ID{}, jsonrpc.CodeParseError, "this is no JSON")
		return nil
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return msg
	}
	if !req.IsCall() {
		if c.tooLoose() {
			return nil
		}
		return req
	}
	if failed := unsupported(versionOf(req.Params)); failed != nil {
		_ = c.send(errorLine(req.ID, failed)) // what is wrong with the stream, reading tells, too
		return nil
	}
	if req.Method == toolCall && !c.awaitInitialized() {
		return nil
	}
	c.mu.Lock()
	_, inUse := c.open[req.ID]
	tooMany := len(c.open) >= maxOpen
	if !inUse && !tooMany {
		c.note(req)
	}
	c.mu.Unlock()
	switch {
	case inUse:
		c.refuse(jsonrpc.ID{}, jsonrpc.CodeInvalidRequest, "a request that is not answered yet has the same id")
		return nil
	case tooMany:
		c.refuse(req.ID, codeBusy, "too many requests at once")
		return nil
	}
	return req
}

// codeBusy is one of the codes that are for servers to give.
const codeBusy = -32000

// toolCall is the method of calls, which are done in the order in which they came.
const toolCall = "tools/call"

// awaitInitialized waits while nothing is handled because the client is being initialized:
// what came meanwhile is then handled all at once. It reports whether the connection lasts.
func (c *wire) awaitInitialized() bool {
	for {
		c.mu.Lock()
		heldUp := c.heldUp()
		c.mu.Unlock()
		if !heldUp {
			return true
		}
		select {
		case <-c.answered:
		case <-c.closed:
			return false
		}
	}
}

// note notes a request that will be handled. c.mu is held.
func (c *wire) note(req *jsonrpc.Request) {
	holdsUp := req.Method == "initialize"
	if req.Method == toolCall {
		c.next, c.placed = req.ID, make(chan struct{})
	}
	if req.Method == "subscriptions/listen" {
		c.endless[req.ID] = true
	}
	c.open[req.ID] = holdsUp
}

// tooLoose reports whether there are too many notifications that wait, which are then
// dropped: nobody is told of it, as they have no answer.
func (c *wire) tooLoose() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.heldUp() {
		c.loose = 0
	}
	c.loose++
	return c.loose > maxOpen
}

func (c *wire) heldUp() bool {
	for _, holdsUp := range c.open {
		if holdsUp {
			return true
		}
	}
	return false
}

// versionOf is the revision of the protocol that the parameters of a request name. Those
// that name none belong to a revision that is agreed upon otherwise.
func versionOf(params json.RawMessage) string {
	var p struct {
		Meta struct {
			Version any `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	if json.Unmarshal(params, &p) == nil {
		if version, ok := p.Meta.Version.(string); ok {
			return version
		}
	}
	return legacyVersion
}

// legacyVersion is a revision whose requests do not name it.
const legacyVersion = "2025-11-25"

func (c *wire) refuse(id jsonrpc.ID, code int64, why string) {
	_ = c.send(errorLine(id, &jsonrpc.Error{Code: code, Message: why})) // what is wrong with the stream, reading tells, too
}

// Write writes a message.
func (c *wire) Write(_ context.Context, msg jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	if res, ok := msg.(*jsonrpc.Response); ok {
		defer c.noteAnswer()
		c.mu.Lock()
		delete(c.open, res.ID)
		delete(c.endless, res.ID)
		c.answering++
		if c.next == res.ID { // it was answered without ever having a place
			c.placeNext()
		}
		c.mu.Unlock()
	}
	return c.send(line)
}

// noteAnswer notes that an answer is written.
func (c *wire) noteAnswer() {
	c.mu.Lock()
	c.answering--
	c.mu.Unlock()
	select {
	case c.answered <- struct{}{}:
	default:
	}
}

// send writes a line, or gives up when the connection is closed.
func (c *wire) send(line []byte) error {
	w := write{line: append(line, '\n'), done: make(chan error, 1)}
	select {
	case c.writes <- w:
	case <-c.closed:
		return io.ErrClosedPipe
	}
	select {
	case err := <-w.done:
		return err
	case <-c.closed:
		return io.ErrClosedPipe
	}
}
