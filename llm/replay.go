package llm

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/proctor-run/proctor/exception"
)

// ReplayDivergedError is the exception of a call that a recording does not answer.
const ReplayDivergedError = "ReplayDivergedError"

// Recording is what a [Recorder] wrote. It does not change and may be replayed several
// times.
type Recording struct {
	models    map[string]Info
	calls     []*line // those that a [Model] answered
	exchanges []*line // those that were passed on
	bodies    int64   // bytes of what these were answered
}

// Bounds of what a recording says of errors, which somebody else may have written.
const (
	maxType    = 128
	maxMessage = 64 << 10
)

// ParseRecording reads a recording. A last line without an end was cut off by a crash and is
// left out. One that does not have all calls, because it would have become too long, is an
// error.
func ParseRecording(data []byte) (*Recording, error) {
	r := &Recording{models: map[string]Info{}}
	for number := 1; ; number++ {
		text, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			break
		}
		if err := r.read(text); err != nil {
			return nil, fmt.Errorf("reading a recording of model calls: line %d: %w", number, err)
		}
		data = rest
	}
	if len(r.models) == 0 {
		return nil, errors.New("reading a recording of model calls: it is empty")
	}
	return r, nil
}

func (r *Recording) read(text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("reading JSON: %w", err)
	}
	switch {
	case l.Cut != "":
		return fmt.Errorf("the recording is cut: %s", l.Cut)
	case l.Schema != "" && l.Schema != recordingSchema:
		return fmt.Errorf("the schema is %q, want %q", l.Schema, recordingSchema)
	case l.Schema != "":
		if l.Model == "" || l.Info == nil {
			return errors.New("there is no model, or nothing about it")
		}
		r.models[l.Model] = l.Info.info()
		return nil
	}
	if _, known := r.models[l.Model]; !known {
		return fmt.Errorf("there is no line with a schema about model %q before it", l.Model)
	}
	if want := r.next(); l.Call != want {
		return fmt.Errorf("call is %d, want %d", l.Call, want)
	}
	if err := l.check(maxBodies - r.bodies); err != nil {
		return err
	}
	if l.Exchange == nil {
		r.calls = append(r.calls, &l)
		return nil
	}
	r.bodies += l.Exchange.size
	r.exchanges = append(r.exchanges, &l)
	return nil
}

// next is the number of the call behind the last one.
func (r *Recording) next() int64 { return int64(len(r.calls)+len(r.exchanges)) + 1 }

// check reports why the line of a call could not be replayed. The body of an answer may
// have left bytes.
func (l *line) check(left int64) error {
	if sum, err := hex.DecodeString(l.Request); err != nil || len(sum) != 32 {
		return errors.New("request is no SHA-256 in hex digits")
	}
	answered := l.Response != nil
	if l.Exchange != nil {
		if answered {
			return errors.New("a call has either a response or an exchange")
		}
		answered = l.Error == nil
	}
	if answered == (l.Error != nil) {
		return errors.New("a call has either a response or an error")
	}
	if l.Error != nil && len(l.Error.Type) > maxType {
		return errors.New("the type of the error is too long to be the name of an exception")
	}
	switch {
	case l.Exchange != nil:
		return l.Exchange.check(l.Error, left)
	case l.Response != nil:
		_, err := l.Response.response()
		return err
	}
	return nil
}

// interrupted reports whether the answer of a call was not waited for.
func (l *line) interrupted() bool { return l.Error != nil && l.Error.Interrupted }

// Replay is an [Opener] whose models give the answers of a recording, in its order, and
// reach no network. Those of calls that were passed on are apart from them: they are given
// by [Replay.Exchange], whatever their order. Calls that failed fail again, at once. The
// fields are set before the first use; it is for one run of an agent.
type Replay struct {
	Recording *Recording
	// Name is what errors call the recording.
	Name string
	// Strict refuses a call whose request is not that of the recording. Without it the
	// first such call is kept for [Replay.Diverged], and all are answered.
	Strict bool
	// Redact is that of the [Recorder]; may be nil.
	Redact func([]byte) []byte

	mu       sync.Mutex // guards what follows
	next     int
	begun    bool    // left is set
	left     []*line // exchanges that were not given yet
	diverged string
}

// Open opens a model of the recording. It needs no key.
func (r *Replay) Open(name string, _ Options) (Model, error) {
	info, err := r.info(name)
	if err != nil {
		return nil, err
	}
	return &replayed{from: r, name: name, info: info}, nil
}

func (r *Replay) info(model string) (Info, error) {
	info, known := r.Recording.models[model]
	if !known {
		return Info{}, exception.Errorf(ReplayDivergedError, "recording %s has no calls of model %s", r.Name, model)
	}
	return info, nil
}

// Diverged says which call was the first whose request differs from that of the recording;
// empty for none.
func (r *Replay) Diverged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.diverged
}

// take is the next call of the recording.
func (r *Replay) take(name, request string) (*line, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == len(r.Recording.calls) {
		return nil, exception.Errorf(ReplayDivergedError, "recording %s has no call %d: it ends before", r.Name, r.Recording.next())
	}
	l := r.Recording.calls[r.next]
	switch {
	case l.Model != name:
		return nil, exception.Errorf(ReplayDivergedError, "call %d of recording %s is one of model %s, not of %s", l.Call, r.Name, l.Model, name)
	case l.interrupted():
		return nil, r.unanswered(l)
	case l.Request != request:
		if err := r.differs(l); err != nil {
			return nil, err
		}
	}
	r.next++
	return l, nil
}

func (r *Replay) unanswered(l *line) error {
	return exception.Errorf(ReplayDivergedError, "call %d of recording %s was never answered: its trial, or whoever made it, ended before", l.Call, r.Name)
}

// differs keeps that a call was made with another request, or refuses it.
func (r *Replay) differs(l *line) error {
	what := fmt.Sprintf("call %d of recording %s was made with another request", l.Call, r.Name)
	if r.Strict {
		return exception.New(ReplayDivergedError, what)
	}
	if r.diverged == "" {
		r.diverged = what
	}
	return nil
}

type replayed struct {
	from *Replay
	name string
	info Info
}

// Info is what was known of the model when it was recorded.
func (m *replayed) Info() Info { return m.info }

// Complete gives the next answer of the recording.
func (m *replayed) Complete(ctx context.Context, req *Request) (*Response, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l, err := m.from.take(m.name, digest(req, m.from.Redact))
	if err != nil {
		return nil, err
	}
	if l.Error == nil {
		return l.Response.response()
	}
	return nil, l.Error.failure(m.name)
}

// failure is the error of a call of a model.
func (e *errorJSON) failure(model string) error {
	message := e.Message[:min(len(e.Message), maxMessage)]
	switch {
	case e.Kind != "":
		return &Error{Kind: e.Kind, Model: model, Status: e.Status, RetryAfter: e.retryAfter(), Message: message}
	case e.Type != "":
		return exception.New(e.Type, message)
	default:
		return errors.New(message)
	}
}
