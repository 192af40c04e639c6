package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/internal/wire"
)

// Bounds of one call, in bytes.
const (
	maxRequest = 64 << 20
	maxAhead   = 1 << 20  // of a request, before it has come
	maxRefusal = 1 << 20  // of what a provider says when it refuses
	maxKept    = 64 << 20 // of an answer, which recordings can hold
)

// call is one call of the model.
type call struct {
	g   *Gateway
	op  operation
	w   http.ResponseWriter
	r   *http.Request
	now func() time.Time

	target string // the path behind the version, with the query
	body   []byte // of the request, as it is passed on
	held   int64  // bytes of memory
	filter bool   // the usage is not the caller's business
	began  time.Time
	sent   bool            // to the provider
	asking context.Context // of what is sent: it may go on when the caller has gone
}

// serve answers a call that was let in.
func (c *call) serve(ctx context.Context) {
	_, model, _ := strings.Cut(c.g.Model, "/")
	if c.op.lists {
		send(c.w, http.StatusOK, list(c.op.api, model))
		return
	}
	if status, err := c.read(model); err != nil {
		c.deny(status, err.Error())
		return
	}
	if err := c.affordable(); err != nil {
		c.refuse(err)
		return
	}
	c.began = c.now()
	if c.g.Replay != nil {
		c.replay()
		return
	}
	c.forward(ctx)
}

// affordable is the error of a call that the budget has nothing left for.
func (c *call) affordable() error {
	if !c.op.answers {
		return nil
	}
	return c.g.Meter.Refuse()
}

// hold counts memory as in use by the call, until it is released.
func (c *call) hold(n int64) bool {
	if !c.g.hold(n) {
		return false
	}
	c.held += n
	return true
}

func (c *call) release() { c.g.hold(-c.held) }

// errBusy refuses what there is no memory for now.
var errBusy = errors.New("the calls under way are too long together: wait until one has ended")

// sentBody is what a caller sends, as far as there is memory for it: as it is, and changed.
type sentBody struct{ c *call }

func (s sentBody) Read(p []byte) (int, error) {
	n, err := s.c.r.Body.Read(p)
	if !s.c.hold(3 * int64(n)) {
		return 0, errBusy
	}
	return n, err //nolint:wrapcheck // it is passed through
}

// take reads the body.
func (c *call) take() (status int, err error) {
	for _, encoding := range c.r.Header.Values("Content-Encoding") {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return http.StatusUnsupportedMediaType, fmt.Errorf("the gateway reads no body in the encoding %q: send it as it is", shown(encoding))
		}
	}
	if c.r.ContentLength > maxRequest {
		return http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", maxRequest)
	}
	var body bytes.Buffer
	body.Grow(int(min(max(c.r.ContentLength, 0)+bytes.MinRead, maxAhead)))
	_, err = body.ReadFrom(io.LimitReader(sentBody{c}, maxRequest+1))
	c.body = body.Bytes()
	switch {
	case err == nil && body.Len() > maxRequest:
		err = bounded.ErrTooLarge
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable, errBusy
	case err != nil:
		status = http.StatusBadRequest
	default:
		return 0, nil
	}
	return status, fmt.Errorf("reading the request: %w", err)
}

// read reads what the caller asks for, and refuses what the gateway does not do.
func (c *call) read(model string) (status int, err error) {
	if status, err := c.take(); err != nil {
		return status, err
	}
	asked, err := wire.ReadRequest(c.body)
	if err != nil {
		return http.StatusBadRequest, err
	}
	name, err := asked.Model()
	if err != nil {
		return http.StatusBadRequest, err
	}
	if c.op.api == llm.Gemini {
		if name != "" && !c.names(name, model) {
			return http.StatusNotFound, c.unknown(name, model)
		}
		name = c.op.model
	}
	if !c.names(name, model) {
		return http.StatusNotFound, c.unknown(name, model)
	}
	if err := c.allowed(asked); err != nil {
		return http.StatusForbidden, err
	}
	c.target = c.op.target(model, c.r.URL.Query())
	if c.op.api == llm.Gemini {
		return 0, nil
	}
	if name == model {
		model = ""
	}
	c.body, c.filter, err = asked.Edit(model, c.op.api == llm.Chat)
	return http.StatusBadRequest, err
}

// names tells whether a caller's name is that of the model.
func (c *call) names(name, model string) bool {
	if c.op.api == llm.Gemini {
		name = strings.TrimPrefix(name, "models/")
	}
	return name == model || name == c.g.Model
}

func (c *call) unknown(name, model string) error {
	return fmt.Errorf("there is no model %q: this gateway serves %q alone", shown(name), model)
}

// deny answers with an error of the gateway's own.
func (c *call) deny(status int, message string) {
	send(c.w, status, problem(c.op.api, status, message))
}

// refuse answers that nothing can be asked any more, and tells those who run the caller.
func (c *call) refuse(err error) {
	c.g.note(err)
	c.deny(http.StatusForbidden, err.Error())
	_ = http.NewResponseController(c.w).Flush()
	if c.g.Stop != nil {
		c.g.Stop(err)
	}
}

// replay answers from the recording.
func (c *call) replay() {
	x, err := c.g.Replay.Exchange(c.g.Model, c.op.api, c.target, c.body)
	switch {
	case exception.TypeOf(err) == llm.ReplayDivergedError:
		c.refuse(err)
		return
	case err != nil:
		c.fail(err, nil)
		return
	}
	if x.Status/100 != 2 {
		refused := &refusal{x.Status, http.Header{"Content-Type": {x.ContentType}}, x.Body}
		c.fail(c.failure(&wire.Exchange{Status: x.Status, Header: refused.header, Body: x.Body}), refused)
		return
	}
	c.w.Header().Set("Content-Type", x.ContentType)
	c.w.WriteHeader(x.Status)
	var end error
	if x.Cut {
		end = io.ErrUnexpectedEOF
	}
	c.relay(x.Status, x.ContentType, io.MultiReader(bytes.NewReader(x.Body), failing{end}))
}

// failing is a reader that ends with an error; nil for a good end.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// refusal is an answer by which a provider refused.
type refusal struct {
	status int
	header http.Header
	body   []byte
}

// forward passes the call on, and its answer back.
func (c *call) forward(ctx context.Context) {
	var refused *refusal
	err := c.g.Route.Do(ctx, func(context.Context) error {
		refused = nil
		if err := c.affordable(); err != nil { // others may have used it up meanwhile
			return err
		}
		c.sent = true
		resp, err := c.post()
		if err != nil {
			if ended := c.ended(); ended != nil {
				return ended
			}
			return c.failure(&wire.Exchange{Err: err})
		}
		defer func() { _ = resp.Body.Close() }()
		if odd := c.odd(resp); odd != nil {
			return odd
		}
		if resp.StatusCode/100 == 2 {
			c.answer(resp)
			return nil
		}
		body, err := bounded.Read(resp.Body, maxRefusal)
		if ended := c.ended(); err != nil && ended != nil {
			return ended
		}
		refused = &refusal{resp.StatusCode, answered(resp.Header, c.key()), c.withoutKey(body)}
		return c.failure(&wire.Exchange{Status: resp.StatusCode, Header: resp.Header, Body: body})
	})
	if _, over := errors.AsType[*llm.BudgetError](err); over {
		c.refuse(err)
		return
	}
	if err != nil {
		c.fail(err, refused)
	}
}

// ended is why nothing is read of the provider any more; nil while it is.
func (c *call) ended() error {
	if c.asking.Err() == nil {
		return nil
	}
	return context.Cause(c.asking)
}

// odd is the failure of an answer that cannot be passed on as one; nil for any other. It may
// have cost something, and is not asked for again.
func (c *call) odd(resp *http.Response) error {
	text := ""
	encoding := resp.Header.Get("Content-Encoding")
	switch {
	case resp.StatusCode < http.StatusOK:
		text = fmt.Sprintf("the server answers with the status %d, which is none of an answer", resp.StatusCode)
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		text = "the server answers in an encoding that it was not asked for"
	default:
		return nil
	}
	if c.op.answers {
		c.g.Meter.Charge(c.g.info().Prices, nil, nil, int64(len(c.body)), 0)
	}
	c.sent = false // it is counted
	conn := wire.Conn{Endpoint: c.g.Route.Endpoint}
	return conn.Fail(llm.BadRequest, &wire.Exchange{}, text)
}

// post makes the request.
func (c *call) post() (*http.Response, error) {
	r, err := c.request()
	if err != nil {
		return nil, err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(c.body)), int64(len(c.body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
	client := *c.g.Route.HTTP
	// A redirection would take the key elsewhere.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client.Do(r.WithContext(c.asking)) //nolint:wrapcheck // the failure is worded where its kind is found
}

// failure is the error of a call that was not answered.
func (c *call) failure(x *wire.Exchange) *llm.Error {
	conn := wire.Conn{Endpoint: llm.Endpoint{Name: c.g.Model, Now: c.now}}
	if c.g.Route != nil {
		conn.Endpoint = c.g.Route.Endpoint
	}
	return conn.Failure(x, nil)
}

// key is the provider's; empty where it has none.
func (c *call) key() string {
	if c.g.Route == nil {
		return ""
	}
	return c.g.Route.Key
}

// withoutKey takes the provider's key out of what it says when it refuses. A word that is too
// short for a secret stays, since programs look for the provider's own words in it.
func (c *call) withoutKey(body []byte) []byte {
	if len(c.key()) < redact.MinLength {
		return body
	}
	return []byte(wire.WithoutKey(string(body), c.key()))
}

// fail answers that the call has failed, in the provider's words where it has refused it.
func (c *call) fail(err error, refused *refusal) {
	x := c.exchange()
	if refused != nil {
		x.Status, x.ContentType, x.Body = refused.status, refused.header.Get("Content-Type"), refused.body
	} else {
		x.Err = err
	}
	c.record(x)
	if c.r.Context().Err() != nil || errors.Is(err, errClosed) { // nobody waits for the answer, which costs all the same
		if c.sent && c.op.answers && refused == nil {
			c.g.Meter.Charge(c.g.info().Prices, nil, nil, int64(len(c.body)), 0)
		}
		panic(http.ErrAbortHandler)
	}
	c.g.note(err)
	if refused == nil || refused.status/100 == 3 {
		c.deny(http.StatusBadGateway, err.Error())
		return
	}
	for name, values := range answered(refused.header, "") {
		c.w.Header()[name] = values
	}
	c.w.WriteHeader(refused.status)
	_, _ = c.w.Write(refused.body) // the caller may have gone
}

// answer passes an answer back.
func (c *call) answer(resp *http.Response) {
	header := answered(resp.Header, c.key())
	for name, values := range header {
		c.w.Header()[name] = values
	}
	// Without a length the caller knows the end only when the call is counted, so that the next
	// one finds that. Where it has no other end, a cut must be seen.
	if !c.filter && resp.ContentLength >= 0 && !c.r.ProtoAtLeast(1, 1) {
		c.w.Header().Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	}
	c.w.WriteHeader(resp.StatusCode)
	body := io.Reader(resp.Body)
	if key := c.key(); secret(key) {
		body = &masked{src: body, key: []byte(key)}
	}
	c.relay(resp.StatusCode, header.Get("Content-Type"), body)
}

// relay passes the body of an answer back while it comes, and counts what it used, however
// it ends. An answer that does not come whole ends the caller's connection; one whose caller
// has gone is read on as long as that goes.
func (c *call) relay(status int, contentType string, body io.Reader) {
	tally := wire.NewTally(c.op.api, contentType)
	var kept bytes.Buffer
	to := caller{c.w, http.NewResponseController(c.w), cmp.Or(c.g.slow, slowest)}
	var out io.Writer = to
	flush := func() error { return nil }
	if c.filter {
		f := wire.NewUsageFilter(to)
		out, flush = f, f.Flush
	}
	observe := io.Writer(tally)
	if c.g.Recorder != nil {
		observe = io.MultiWriter(tally, &kept)
	}
	gone, broken := c.pass(body, observe, out)
	if gone == nil {
		gone = flush()
	}
	told := tally.Result()
	x := c.exchange()
	x.Status, x.ContentType, x.Body, x.Cut = status, contentType, kept.Bytes(), broken != nil
	c.charge(x, told)
	c.record(x)
	if gone == nil && c.ended() == nil {
		c.noteAnswer(told, broken)
	}
	if gone != nil || broken != nil {
		panic(http.ErrAbortHandler) // the caller must not take it for the end
	}
}

// noteAnswer keeps whether an answer was one.
func (c *call) noteAnswer(told wire.Tallied, broken error) {
	conn := wire.Conn{Endpoint: llm.Endpoint{Name: c.g.Model, Now: c.now}}
	switch {
	case !c.op.answers:
	case broken != nil:
		c.g.note(c.failure(&wire.Exchange{Err: fmt.Errorf("the answer is cut: %w", broken)}))
	case told.Failure != nil:
		c.g.note(conn.Unusable(&wire.Exchange{Status: http.StatusOK, Body: told.Failure}, "the answer is an error"))
	default:
		c.g.note(nil)
	}
}

// exchange is what is recorded of the call.
func (c *call) exchange() *llm.Exchange {
	return &llm.Exchange{Model: c.g.Model, API: c.op.api, Path: c.target, Request: c.body}
}

func (c *call) record(x *llm.Exchange) {
	if c.g.Recorder != nil {
		c.g.Recorder.Exchange(x, c.g.info(), c.now().Sub(c.began))
	}
}

// charge counts what an answer used, and adds that to what is recorded.
func (c *call) charge(x *llm.Exchange, told wire.Tallied) {
	if !c.op.answers {
		return
	}
	prices := c.g.info().Prices
	believed := (&llm.Response{Usage: told.Usage, Cost: told.Cost}).Believable()
	x.Usage, x.Cost = believed.Usage, believed.Cost
	if early := x.Usage; x.Cut && early != nil {
		// What was told while it came is not all: a caller could break off each answer.
		x.Usage, x.Cost = new(*early), nil
		x.Usage.Completion = max(early.Completion, told.Text/llm.BytesPerToken)
		c.g.Meter.Add(llm.Spent{Uncounted: 1})
	}
	if x.Cost == nil && x.Usage != nil && prices != nil {
		x.Cost = new(prices.Cost(*x.Usage))
	}
	c.g.Meter.Charge(prices, x.Usage, x.Cost, int64(len(c.body)), told.Text)
}

// pass copies until src ends, to both; gone is why dst takes no more, broken why src gave
// no more. What observes never fails, and goes on without dst.
func (c *call) pass(src io.Reader, observe, dst io.Writer) (gone, broken error) {
	longest := cmp.Or(c.g.longest, maxKept)
	buf := make([]byte, 32<<10)
	for size := 0; ; {
		n, err := src.Read(buf)
		size += n
		switch {
		case size > longest:
			return gone, fmt.Errorf("the answer has more than %d bytes", longest)
		case !c.hold(2 * int64(n)): // for the recording and for what counts
			return gone, errBusy
		}
		if n > 0 {
			_, _ = observe.Write(buf[:n])
			if gone == nil {
				_, gone = dst.Write(buf[:n])
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return gone, nil
		case err != nil:
			return gone, err
		}
	}
}

// caller is who waits for the answer: what is written is sent at once, or not in time.
type caller struct {
	io.Writer
	*http.ResponseController
	slowest time.Duration
}

func (c caller) Write(p []byte) (int, error) {
	late := time.AfterFunc(c.slowest, func() { _ = c.SetWriteDeadline(longAgo()) })
	defer late.Stop()
	n, err := c.Writer.Write(p)
	if err == nil {
		err = c.Flush()
	}
	return n, err //nolint:wrapcheck // it only says that the caller has gone
}
