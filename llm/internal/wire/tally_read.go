package wire

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/proctor-run/proctor/llm"
)

const (
	// maxFailure bounds what is kept of an error.
	maxFailure = 16 << 10
	// maxKept bounds what is kept of other members: objects of usage, and names.
	maxKept = 64 << 10
)

// reader reads the events of a stream, each of which is JSON, or an answer in one piece,
// which is like an event of its own. What it keeps is decoded only at the end: most of it is
// replaced by later events.
type reader struct {
	api   llm.API
	usage []byte  // the last one
	parts Members // of Anthropic's usage, which comes in parts
	model []byte  // a string
	// finish is the reason that the protocol gives, a string; for responses the reason
	// why it is incomplete.
	finish  []byte
	status  []byte // of a response, a string
	blocked bool   // Gemini blocked the prompt
	calls   bool   // there are calls of tools
	ended   bool   // the last event was there
	failure json.RawMessage
	text    int64
	output  int64 // text of a response that comes again at the end
}

// event reads one event; failed says that the stream calls it an error.
func (r *reader) event(data []byte, failed bool) {
	data = bytes.TrimSpace(data)
	switch r.api {
	case llm.Responses:
		r.responsesEvent(data)
	case llm.Anthropic:
		r.anthropicEvent(data)
	case llm.Gemini:
		r.geminiChunk(data)
	default:
		r.chatChunk(data)
	}
	if failed {
		r.fail(data)
	}
}

// fail keeps the first error.
func (r *reader) fail(value []byte) {
	if r.failure != nil || !isSet(value) {
		return
	}
	if len(value) <= maxFailure && json.Valid(value) {
		r.failure = bytes.Clone(value)
		return
	}
	if text, err := JSON(strings.ToValidUTF8(string(value[:min(len(value), maxFailure)]), "\uFFFD")); err == nil {
		r.failure = text
	}
}

// isSet tells of a member that is there and says something.
func isSet(value []byte) bool {
	switch string(value) {
	case "", "null", "false", `""`, "{}", "[]":
		return false
	}
	return true
}

// keep replaces what is kept of a member, unless the new one is null or too long.
func keep(kept *[]byte, value []byte) {
	if !isNull(value) && len(value) <= maxKept {
		*kept = append((*kept)[:0], value...)
	}
}

// keepReason keeps why an answer ended: that of the first choice, where there are several.
func (r *reader) keepReason(reason, index []byte) {
	if len(reason) > 2 && reason[0] == '"' && (len(r.finish) == 0 || len(index) == 0 || string(index) == "0") {
		keep(&r.finish, reason)
	}
}

func (r *reader) result() Tallied {
	out := Tallied{Model: decoded(r.model), Whole: r.ended, Failure: r.failure, Text: max(r.text, r.output)}
	reason := decoded(r.finish)
	switch r.api {
	case llm.Responses:
		out.Usage, out.Cost = ResponsesUsage(r.usage)
		out.Finish = r.responsesFinish(reason)
		return out
	case llm.Anthropic:
		out.Usage, out.Cost = anthropicUsage(r.parts)
		if reason != "" {
			out.Finish = AnthropicFinish(reason)
		}
	case llm.Gemini:
		out.Usage = GeminiUsage(r.usage)
		switch {
		case reason != "":
			out.Finish = GeminiFinish(reason)
		case r.blocked:
			out.Finish = llm.Filtered
		}
	default:
		out.Usage, out.Cost = ChatUsage(r.usage)
		if reason != "" {
			out.Finish = ChatFinish(reason)
		}
	}
	if r.calls && out.Finish == llm.Stopped {
		out.Finish = llm.CallsMade
	}
	return out
}

// decoded is a string in JSON as it means; empty for what is none.
func decoded(value []byte) string {
	var s string
	if len(value) == 0 || json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// textIn is about how many bytes of text a content has: a string, or a list of parts.
func textIn(value []byte, depth int) int64 {
	if len(value) == 0 || depth == 0 {
		return 0
	}
	if value[0] == '"' {
		return textLen(value)
	}
	n := int64(0)
	for parts := walkList(value); parts.next(); {
		for w := walkObject(parts.value); w.next(); {
			switch string(w.key) {
			case "text", "thinking", "refusal":
				n += textIn(w.value, depth-1)
			}
		}
	}
	return n
}

// partDepth is how deep parts of a content are in each other.
const partDepth = 3

// argumentsLen is how many bytes the arguments of a call have: a string or, of some
// protocols and servers, the object itself.
func argumentsLen(value []byte) int64 {
	switch {
	case !isSet(value):
		return 0
	case value[0] == '"':
		return textLen(value)
	}
	return int64(len(value))
}
