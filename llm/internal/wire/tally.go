package wire

import (
	"encoding/json"
	"strings"

	"github.com/proctor-run/proctor/llm"
)

// maxDocument bounds an answer in one piece, and an element of one that is a list. Of what
// is longer the usage is not known.
const maxDocument = 32 << 20

// Tallied is what a [Tally] read of an answer. What a server says is not believed to be
// right: see [llm.Response.Believable].
type Tallied struct {
	// Usage is nil where the server did not tell. Of an answer that ended early it is
	// what had been told until then.
	Usage *llm.Usage
	// Cost is what the server said, in US dollars; nil where it did not.
	Cost *float64
	// Model is the name under which the server answered; empty where it did not tell.
	Model string
	// Finish is why the answer ended; empty where that is not known.
	Finish llm.Finish
	// Whole says that the answer came to its end: the JSON is whole, or the stream had the
	// last event of its protocol.
	Whole bool
	// Failure is the first error inside of an answer whose status is that of success, as
	// JSON; nil for none. Of one that is long, or no JSON, it is the beginning as a text.
	Failure json.RawMessage
	// Text is about how many bytes of text, reasoning and arguments of tools the answer
	// had, for an estimate where there is no usage. Of an answer in one piece that cannot
	// be read, as it ended early or is too long, it is the size.
	Text int64
}

// Tally reads what an answer used while it passes by: an answer in one piece (JSON), a
// stream of events, or the JSON list that Gemini streams. The bytes are those without a
// content encoding. It is not for several goroutines at once.
//
// It keeps at most one event of a stream, of up to 8 MiB, or an answer in one piece, of up
// to 32 MiB; what is longer is passed over.
type Tally struct {
	json   bool   // what the content type says
	form   form   // what the text is
	size   int64  // bytes written, but for leading spaces
	buf    []byte // an answer in one piece
	valid  bool   // that is JSON
	events events
	list   elements
	broken bool // an element of the list is no JSON
	read   reader
	ended  bool
}

type form int

const (
	unknown form = iota
	document
	list
	stream
)

// NewTally reads an answer of a protocol. The content type is that of the answer; where the
// text is plainly of another kind, the text counts.
func NewTally(api llm.API, contentType string) *Tally {
	t := &Tally{json: strings.Contains(strings.ToLower(contentType), "json"), read: reader{api: api}}
	t.events.on = t.read.event
	t.list.on = t.element
	return t
}

// Write takes the next bytes of the answer. It takes all of them, and never fails.
func (t *Tally) Write(p []byte) (int, error) {
	n := len(p)
	if t.ended {
		return n, nil
	}
	if t.form == unknown {
		if p = p[leading(p):]; len(p) == 0 {
			return n, nil
		}
		t.form = formOf(p[0], t.json)
	}
	t.size += int64(len(p))
	switch t.form {
	case stream:
		t.events.write(p)
	case list:
		t.list.write(p)
	default:
		if t.size > maxDocument {
			t.buf = nil
		} else {
			t.buf = append(t.buf, p...)
		}
	}
	return n, nil
}

// leading is how many bytes of space, or of a byte order mark, a text begins with.
func leading(p []byte) int {
	for i, c := range p {
		switch c {
		case ' ', '\t', '\r', '\n', 0xef, 0xbb, 0xbf:
		default:
			return i
		}
	}
	return len(p)
}

// formOf tells by its first byte what a text is. Only what begins like neither is what its
// content type says.
func formOf(first byte, isJSON bool) form {
	switch first {
	case '{':
		return document
	case '[':
		return list
	case 'd', 'e', 'i', 'r', ':': // data, event, id, retry, and a comment
		return stream
	}
	if isJSON {
		return document
	}
	return stream
}

func (t *Tally) element(data []byte) {
	if !json.Valid(data) {
		t.broken = true
		return
	}
	t.read.event(data, false)
}

// Result tells what was read. What is written afterwards does not count.
func (t *Tally) Result() Tallied {
	if !t.ended {
		t.end()
	}
	out := t.read.result()
	switch t.form {
	case document:
		out.Whole = t.valid
		if !t.valid {
			out.Text = t.size
		}
	case list:
		out.Whole = t.list.closed && !t.list.odd && !t.broken
	}
	return out
}

// end reads what is left.
func (t *Tally) end() {
	t.ended = true
	switch t.form {
	case stream:
		t.events.end()
	case document:
		if t.valid = json.Valid(t.buf); t.valid {
			t.read.event(t.buf, false)
		}
		t.buf = nil
	}
}
