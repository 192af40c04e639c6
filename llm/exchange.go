package llm

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/proctor-run/proctor/exception"
)

// Exchange is a call that was passed on in the words of its protocol, and its answer.
type Exchange struct {
	// Model is the name as it was configured, "provider/model".
	Model string
	API   API
	// Path is that of the request, from the protocol's version on, with its query if it
	// has one: "/chat/completions", "/models/m:streamGenerateContent?alt=sse". No key may
	// be in it that [Recorder.Redact] does not know.
	Path string
	// Request is the body of the request. Only its digest is kept.
	Request []byte

	// Status is that of the answer, 200 to 999.
	Status int
	// ContentType is that of the answer; one of more than 256 bytes, or with control
	// characters, is not kept.
	ContentType string
	// Body is that of the answer as far as it came, without any Content-Encoding: secrets
	// are not found in what is compressed. It may have 64 MiB.
	Body []byte
	// Cut says that the answer did not come whole: the connection, or the agent, ended
	// before.
	Cut bool
	// Usage and Cost, in US dollars, are nil where they are not known.
	Usage *Usage
	Cost  *float64

	// Err is why there is no answer at all; nil where there is one. With it, the fields
	// of the answer are ignored. One that a context caused means that nobody waited for
	// the answer any more.
	Err error
}

// Bounds of what recordings hold of answers that were passed on.
const (
	maxPlainBody = 1 << 10   // longer ones are compressed: streams shrink to a tenth
	maxBody      = 64 << 20  // of one answer
	maxBodies    = 256 << 20 // of all answers of a recording
	maxMediaType = 256
	maxShownPath = 256 // of a request, in an error
	// What an HTTP server can send as its last word.
	minStatus, maxStatus = 200, 999
)

var (
	errBodyTooLong   = fmt.Errorf("the body of its answer has more than %d bytes", maxBody)
	errBodiesTooLong = fmt.Errorf("the bodies of all answers have more than %d bytes together", maxBodies)
)

// Exchange writes down a call that was passed on, when it ended: info is about its model,
// took how long it took. It may be called by several goroutines, and fails no call.
func (r *Recorder) Exchange(x *Exchange, info Info, took time.Duration) {
	if r.full() {
		return
	}
	l := line{Model: x.Model, Request: x.digest(r.Redact), Duration: new(max(0, took.Milliseconds()))}
	l.Exchange = &exchangeJSON{API: x.API, Path: x.Path}
	var err error
	if x.Err != nil {
		l.Error = newErrorJSON(x.Err, errors.Is(x.Err, context.Canceled) || errors.Is(x.Err, context.DeadlineExceeded))
		if !isStatus(l.Error.Status) {
			l.Error.Status = 0
		}
	} else {
		err = l.Exchange.answer(x, r.Redact)
	}
	r.add(l, info, err)
}

func isStatus(n int) bool { return n >= minStatus && n <= maxStatus }

// full reports whether nothing more is written.
func (r *Recorder) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// digest is the SHA-256 of the path of the request, a line break and its body, without
// secrets, in hex digits.
func (x *Exchange) digest(redact func([]byte) []byte) string {
	path, body := []byte(x.Path), x.Request
	if redact != nil {
		path, body = redact(path), redact(body)
	}
	sum := sha256.New()
	for _, part := range [][]byte{path, []byte("\n"), body} {
		_, _ = sum.Write(part) // a hash takes everything
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// exchangeJSON is an exchange in a recording, without what its line has: the model, the
// digest and the error.
type exchangeJSON struct {
	API    API        `json:"api"`
	Path   string     `json:"path"`
	Status int        `json:"status,omitempty"`
	Type   string     `json:"type,omitempty"`
	Body   string     `json:"body,omitempty"`
	Gzip   []byte     `json:"gzip,omitempty"` // in place of Body
	Cut    bool       `json:"cut,omitempty"`
	Usage  *usageJSON `json:"usage,omitempty"`
	Cost   *float64   `json:"cost,omitempty"`

	size int64 // of the body that Body or Gzip holds
}

// answer sets what came back. The error is why it cannot be written so that it can be
// read.
func (e *exchangeJSON) answer(x *Exchange, redact func([]byte) []byte) error {
	if !isStatus(x.Status) {
		return fmt.Errorf("the status of its answer is %d", x.Status)
	}
	e.Status, e.Type, e.Cut = x.Status, mediaType(x.ContentType), x.Cut
	e.Usage = newUsageJSON(x.Usage)
	if c := x.Cost; c != nil && !math.IsNaN(*c) && !math.IsInf(*c, 0) {
		e.Cost = new(*c)
	}
	if len(x.Body) > maxBody {
		return errBodyTooLong
	}
	body := x.Body
	if redact != nil { // nobody finds a secret in what is compressed
		body = redact(body)
	}
	if e.size = int64(len(body)); e.size > maxBody {
		return errBodyTooLong
	}
	if len(body) <= maxPlainBody && utf8.Valid(body) {
		e.Body = string(body)
		return nil
	}
	var err error
	e.Gzip, err = compress(body)
	return err
}

// mediaType is a content type that can be the value of a header, empty where it cannot.
func mediaType(text string) string {
	if len(text) > maxMediaType || strings.ContainsFunc(text, unicode.IsControl) {
		return ""
	}
	return text
}

func compress(body []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(body); err != nil {
		return nil, fmt.Errorf("compressing its answer: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compressing its answer: %w", err)
	}
	return b.Bytes(), nil
}

// within reports whether data, the JSON of a line without secrets, still has the compressed
// body as it is: by chance, it could have looked like a secret.
func (e *exchangeJSON) within(data []byte) bool {
	return len(e.Gzip) == 0 || bytes.Contains(data, base64.StdEncoding.AppendEncode(nil, e.Gzip))
}

// check reports why an exchange that was read could not be replayed, and measures its body.
// All bodies that follow may have left bytes. Nothing of what is compressed is held.
func (e *exchangeJSON) check(failure *errorJSON, left int64) error {
	if failure != nil {
		if e.Status != 0 || e.Body != "" || len(e.Gzip) > 0 {
			return errors.New("an exchange has either an answer or an error")
		}
		if failure.Status != 0 && !isStatus(failure.Status) {
			return fmt.Errorf("the status of an error is %d, want %d to %d", failure.Status, minStatus, maxStatus)
		}
		return nil
	}
	switch {
	case !isStatus(e.Status):
		return fmt.Errorf("the status of an answer is %d, want %d to %d", e.Status, minStatus, maxStatus)
	case e.Body != "" && len(e.Gzip) > 0:
		return errors.New("an answer has either a body or a gzip")
	}
	if err := e.measure(min(maxBody, left)); err != nil {
		return err
	}
	switch {
	case e.size > maxBody:
		return errBodyTooLong
	case e.size > left:
		return errBodiesTooLong
	}
	return nil
}

// measure sets the size of the body, or where it is more than limit any that is, too.
func (e *exchangeJSON) measure(limit int64) error {
	e.size = int64(len(e.Body))
	if len(e.Gzip) == 0 {
		return nil
	}
	z, err := gzip.NewReader(bytes.NewReader(e.Gzip))
	if err == nil {
		e.size, err = io.Copy(io.Discard, io.LimitReader(z, limit+1))
	}
	if err != nil {
		return fmt.Errorf("decompressing an answer: %w", err)
	}
	return nil
}

// body is the body of an exchange that was checked.
func (e *exchangeJSON) body() ([]byte, error) {
	if len(e.Gzip) == 0 {
		return []byte(e.Body), nil
	}
	z, err := gzip.NewReader(bytes.NewReader(e.Gzip))
	if err != nil {
		return nil, fmt.Errorf("decompressing an answer: %w", err)
	}
	body := make([]byte, e.size)
	if _, err := io.ReadFull(z, body); err != nil {
		return nil, fmt.Errorf("decompressing an answer: %w", err)
	}
	return body, nil
}

// exchange is an exchange that shares nothing with what was read.
func (l *line) exchange() (*Exchange, error) {
	e := l.Exchange
	body, err := e.body()
	if err != nil {
		return nil, err
	}
	x := &Exchange{
		Model: l.Model, API: e.API, Path: e.Path, Status: e.Status, ContentType: mediaType(e.Type),
		Body: body, Cut: e.Cut, Usage: e.Usage.usage(),
	}
	if e.Cost != nil {
		x.Cost = new(*e.Cost)
	}
	return x, nil
}

// Known tells of a model of the recording what was known when it was recorded; false where
// it has none of that name.
func (r *Replay) Known(model string) (Info, bool) {
	info, err := r.info(model)
	return info, err == nil
}

// Exchange gives the answer of a call that was passed on: of those that were not given yet,
// the first that was made with the same request, else the first of the same model and path,
// whatever its query. Agents make calls at the same time, so that their order means nothing.
//
// The error is that of the recorded call, or a [ReplayDivergedError]. A call of which the
// answer was not waited for is never given.
func (r *Replay) Exchange(model string, api API, path string, request []byte) (*Exchange, error) {
	if _, err := r.info(model); err != nil {
		return nil, err
	}
	asked := &Exchange{Model: model, API: api, Path: path, Request: request}
	l, err := r.find(asked, asked.digest(r.Redact))
	if err != nil {
		return nil, err
	}
	if l.Error != nil {
		return nil, l.Error.failure(model)
	}
	return l.exchange()
}

// find takes the call out of those that are left.
func (r *Replay) find(asked *Exchange, digest string) (*line, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.begun {
		r.begun, r.left = true, slices.Clone(r.Recording.exchanges)
	}
	at := r.leftOver(asked, digest)
	if at < 0 {
		return nil, exception.Errorf(ReplayDivergedError, "recording %s has no call of model %s to %q that is left",
			r.Name, asked.Model, asked.Path[:min(len(asked.Path), maxShownPath)])
	}
	l := r.left[at]
	switch {
	case l.interrupted():
		return nil, r.unanswered(l)
	case l.Request != digest:
		if err := r.differs(l); err != nil {
			return nil, err
		}
	}
	r.left = slices.Delete(r.left, at, at+1)
	return l, nil
}

// leftOver is the place of the call that answers best, -1 for none: one of the same request
// before another, and of these one that was answered.
func (r *Replay) leftOver(asked *Exchange, digest string) int {
	const none = 4
	path, best, at := withoutQuery(asked.Path), none, -1
	for i, l := range r.left {
		if l.Model != asked.Model || l.Exchange.API != asked.API {
			continue
		}
		rank := none
		switch same, like := l.Request == digest, withoutQuery(l.Exchange.Path) == path; {
		case same && !l.interrupted():
			return i
		case same:
			rank = 1
		case like && !l.interrupted():
			rank = 2
		case like:
			rank = 3
		}
		if rank < best {
			best, at = rank, i
		}
	}
	return at
}

func withoutQuery(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}
