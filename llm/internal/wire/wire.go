// Package wire is what the providers of models share: one bounded request for each call,
// bodies that leave away what a server does not take, and the reading of failures.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/llm"
)

// MaxBody bounds what is read of an answer.
const MaxBody = 64 << 20

// Optional is something in a request that a server may not know. If it refuses a request
// that has it, and names it, the request is made once more without it.
type Optional struct {
	// Name is what the builder of the body is told to leave away.
	Name string
	// Members are its names in a body: one of them must be in the request.
	Members []string
	// Words are what else a refusal may call it.
	Words []string
	// Once says that later calls try it again.
	Once bool
}

// Conn makes the calls of one endpoint.
type Conn struct {
	// Endpoint is what was dialled; its Base has no slash at the end.
	llm.Endpoint
	client   *http.Client
	optional []Optional

	mu      sync.Mutex
	refused map[string]bool // what the server has shown not to take
}

// Exchange is one request and what came of it.
type Exchange struct {
	Status int // 0 without an answer
	Header http.Header
	Body   []byte
	Err    error // why there is no whole answer
}

// Dial checks an endpoint and prepares its calls.
func Dial(e llm.Endpoint, optional []Optional) (*Conn, error) {
	if e.Model == "" {
		return nil, exception.Errorf(exception.ValueError, "model %q: the name of the model is empty", e.Name)
	}
	e.Base = strings.TrimRight(e.Base, "/")
	if e.Base != "" {
		u, err := url.Parse(e.Base)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, exception.Errorf(exception.ValueError,
				"model %s: its address must begin with http:// or https:// and name a host", e.Name)
		}
		if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, exception.Errorf(exception.ValueError,
				"model %s: its address must have no user, query or fragment", e.Name)
		}
	}
	if strings.ContainsAny(e.Key, "\r\n\x00") {
		return nil, exception.Errorf(exception.ValueError, "model %s: its key has a line break in it", e.Name)
	}
	e.Info.Name = e.Name
	client := http.Client{}
	if e.HTTP != nil {
		client = *e.HTTP
	}
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
	}
	client.Transport = recorder{client.Transport}
	// A redirection would take the key elsewhere, and be a second request.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Conn{Endpoint: e, client: &client, optional: optional, refused: map[string]bool{}}, nil
}

// Client makes requests whose whole answers are kept, see [Conn.Ask].
func (c *Conn) Client() *http.Client { return c.client }

// Info tells what is known of the model.
func (c *Conn) Info() llm.Info { return c.Endpoint.Info }

// Call is one call: how its body is made and sent.
type Call struct {
	// Build makes the body; without says what to leave away.
	Build func(without map[string]bool) *Body
	// Send makes one request with the client of the connection, in the given context.
	// Its error counts only where the answer itself shows none.
	Send func(ctx context.Context, body []byte) error
}

// attempts bounds the requests of one call. Every one after the first leaves away
// something that the one before was refused for.
const attempts = 4

// Ask makes the call, and again without what the server says that it does not take. The
// error is that of the call.
func (c *Conn) Ask(ctx context.Context, req *llm.Request, call Call) (*Exchange, error) {
	without := c.known()
	body, err := c.encode(req, call, without)
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		x := &Exchange{}
		err := call.Send(context.WithValue(ctx, exchangeKey{}, x), body)
		if err == nil && x.Status/100 == 2 {
			return x, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if n == attempts || !c.leaveAway(x, body, without) {
			return nil, c.Failure(x, err)
		}
		again, encodeErr := c.encode(req, call, without)
		if encodeErr != nil || bytes.Equal(again, body) {
			return nil, c.Failure(x, err)
		}
		body = again
	}
}

func (c *Conn) known() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	without := map[string]bool{}
	for name := range c.refused {
		without[name] = true
	}
	return without
}

// leaveAway adds to without what a refusal names, and tells whether there is any.
func (c *Conn) leaveAway(x *Exchange, body []byte, without map[string]bool) bool {
	if x.Status != http.StatusBadRequest && x.Status != http.StatusUnprocessableEntity {
		return false
	}
	text := problemOf(x.Body).refusal()
	if text == "" {
		return false
	}
	found := false
	for _, o := range c.optional {
		if without[o.Name] || !o.in(body) || !names(text, o.Members) && !names(text, o.Words) {
			continue
		}
		without[o.Name], found = true, true
		if !o.Once {
			c.mu.Lock()
			c.refused[o.Name] = true
			c.mu.Unlock()
		}
	}
	return found
}

func (o Optional) in(body []byte) bool {
	return slices.ContainsFunc(o.Members, func(m string) bool { return bytes.Contains(body, []byte(`"`+m+`":`)) })
}

func (c *Conn) encode(req *llm.Request, call Call, without map[string]bool) ([]byte, error) {
	body := call.Build(without)
	if req.Extra != nil {
		for key, v := range req.Extra.All() {
			if !without[key] {
				body.SetValue(key, v)
			}
		}
	}
	data, err := body.encode()
	if err != nil {
		return nil, &llm.Error{Kind: llm.BadRequest, Model: c.Name, Message: c.clean(err.Error())}
	}
	return data, nil
}

// Post makes a request that needs no library: the body goes to the path below the base.
func (c *Conn) Post(ctx context.Context, address string, header http.Header, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close() //nolint:wrapcheck // it is in memory
}

// Decode reads the JSON of an answer.
func (x *Exchange) Decode(into any) error {
	if err := json.Unmarshal(x.Body, into); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return nil
}

type exchangeKey struct{}

// recorder reads answers whole, and keeps them where the request's context says.
type recorder struct{ next http.RoundTripper }

func (t recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	x, _ := req.Context().Value(exchangeKey{}).(*Exchange)
	if x == nil {
		x = &Exchange{}
	}
	res, err := t.next.RoundTrip(req)
	if err != nil {
		x.Err = err
		return nil, err //nolint:wrapcheck // the client says what was asked of whom
	}
	x.Status, x.Header = res.StatusCode, res.Header
	x.Body, x.Err = bounded.Read(res.Body, MaxBody)
	if err := res.Body.Close(); x.Err == nil && err != nil {
		x.Err = err
	}
	if x.Err != nil {
		return nil, fmt.Errorf("reading the answer: %w", x.Err)
	}
	res.Body = io.NopCloser(bytes.NewReader(x.Body))
	// Libraries refuse JSON that is called otherwise, which servers of one's own do.
	res.Header = res.Header.Clone()
	res.Header.Set("Content-Type", "application/json")
	return res, nil
}
