package llm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/clock"
)

// Recorder is an [Opener] that keeps what models answer, also to calls that are passed on
// past it, see [Recorder.Exchange]. [ParseRecording] reads it.
//
// A recording is lines of JSON. Before the first call of a model there is a line about the
// model, then there is a line for each call, in the order in which calls ended. Requests
// are not kept, only their digests: each has all of the conversation before it.
//
// The fields are set before the first use.
type Recorder struct {
	// Opener opens the models. It must be set.
	Opener Opener
	// To is given one line with each Write. When it fails, nothing more is written: a
	// recording never fails a call. It must be set.
	To io.Writer
	// Limit bounds the recording, in bytes; 0 is no bound. The last line of one that
	// would be longer says so.
	Limit int64
	// Redact takes secrets out of what is written, and out of requests before they are
	// digested; nil changes nothing.
	Redact func([]byte) []byte
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu      sync.Mutex // guards what follows
	known   map[string]bool
	calls   int64
	written int64
	bodies  int64 // bytes of the bodies of exchanges
	ended   bool
}

// recordingSchema names the format of recordings.
const recordingSchema = "proctor-model-calls-v1"

// Open opens a model whose answers are kept.
func (r *Recorder) Open(name string, o Options) (Model, error) {
	m, err := r.Opener.Open(name, o)
	if err != nil {
		return nil, err //nolint:wrapcheck // the opener's own words
	}
	return &recorded{Model: m, name: name, to: r}, nil
}

type recorded struct {
	Model
	name string
	to   *Recorder
}

// Complete calls the model.
func (m *recorded) Complete(ctx context.Context, req *Request) (*Response, error) {
	now := clock.Or(m.to.Now)
	l := line{Model: m.name, Request: digest(req, m.to.Redact)}
	began := now()
	resp, err := m.Model.Complete(ctx, req)
	l.Duration = new(max(0, now().Sub(began).Milliseconds()))
	if err != nil {
		l.Error = newErrorJSON(err, ctx.Err() != nil)
	} else {
		l.Response = newResponseJSON(resp)
	}
	m.to.add(l, m.Info(), nil)
	return resp, err //nolint:wrapcheck // the model's own error
}

// add writes the line of a call, behind that of its model. The recording ends there where
// unfit says why the line could not be read.
func (r *Recorder) add(l line, info Info, unfit error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known[l.Model] {
		if r.known == nil {
			r.known = map[string]bool{}
		}
		r.known[l.Model] = true
		r.put(line{Schema: recordingSchema, Model: l.Model, Info: newInfoJSON(info)}, nil)
	}
	r.calls++
	l.Call = r.calls
	if l.Exchange != nil {
		if r.bodies += l.Exchange.size; r.bodies > maxBodies {
			unfit = errBodiesTooLong
		}
	}
	r.put(l, unfit)
}

// cutRoom is kept free for the line that tells of a cut, in bytes.
const cutRoom = 256

// put writes a line. One that does not fit, or cannot be written so that it can be read,
// ends the recording.
func (r *Recorder) put(l line, unfit error) {
	if r.ended {
		return
	}
	var data []byte
	err := unfit
	if err == nil {
		data, err = encodeLine(l, r.Redact)
	}
	switch {
	case err != nil:
		data, r.ended = cutLine(fmt.Sprintf("call %d could not be written down: %v", l.Call, err)), true
	case r.Limit > 0 && r.written+int64(len(data)) > r.Limit-cutRoom:
		data, r.ended = cutLine(fmt.Sprintf("call %d would have made it longer than %d bytes", max(l.Call, 1), r.Limit)), true
	}
	r.written += int64(len(data))
	if _, err := r.To.Write(data); err != nil {
		r.ended = true
	}
}

var errUnreadable = errors.New("without its secrets, or nested as deeply as it is, it is no JSON that can be read")

// encodeLine makes the text of a line, with its end and without secrets.
func encodeLine(l line, redact func([]byte) []byte) ([]byte, error) {
	data, err := encode(l)
	if err != nil {
		return nil, err
	}
	if redact != nil {
		data = redact(data)
	}
	if !json.Valid(data) || l.Exchange != nil && !l.Exchange.within(data) {
		return nil, errUnreadable
	}
	return append(data, '\n'), nil
}

func cutLine(why string) []byte {
	data, err := encode(line{Cut: why[:min(len(why), cutRoom/2)]})
	if err != nil {
		data = []byte(`{"cut":"an error"}`) // a text can always be written
	}
	return append(data, '\n')
}

// encode makes JSON that escapes no more than it must.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// digest is the SHA-256 of what a request asks, in hex digits. The name of a session is no
// part of that. Secrets are none either: who replays a recording does not have them.
func digest(req *Request, redact func([]byte) []byte) string {
	data, err := encode(newRequestJSON(req))
	if err != nil {
		data = []byte(err.Error())
	}
	if redact != nil {
		data = redact(data)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// newErrorJSON is an error of a call. What ended because nobody waited any more is no
// answer.
func newErrorJSON(err error, ended bool) *errorJSON {
	if failed, ok := errors.AsType[*Error](err); ok {
		return &errorJSON{Kind: failed.Kind, Status: failed.Status, Message: failed.Message, RetryAfter: failed.RetryAfter.Milliseconds()}
	}
	e := &errorJSON{Type: exception.TypeOf(err), Message: err.Error()}
	e.Interrupted = e.Type == "" && ended
	return e
}
