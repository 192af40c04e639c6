package wire

import (
	"bytes"
	"strings"

	"github.com/proctor-run/proctor/llm"
)

// responsesEvent reads an event of a response, or a response in one piece.
func (r *reader) responsesEvent(data []byte) {
	var kind, delta, response, item, problem []byte
	w := walkObject(data)
	for w.next() {
		switch string(w.key) {
		case "type":
			kind = w.value
		case "delta":
			delta = w.value
		case "response":
			response = w.value
		case "item":
			item = w.value
		case "error":
			problem = w.value
		}
	}
	if !w.whole {
		return
	}
	name := inside(kind)
	switch {
	case len(name) == 0:
		r.response(data)
	case string(name) == "error":
		r.fail(problem)
		r.fail(data)
	case bytes.HasSuffix(name, []byte(".delta")):
		if string(name) != "response.audio.delta" { // which is no text
			r.text += textLen(delta)
		}
	case string(name) == "response.output_item.done":
		r.responseItem(item)
	case isObject(response):
		r.responseState(string(name), response)
	}
}

// responseState reads an event that has the whole response, as far as there is any.
func (r *reader) responseState(name string, response []byte) {
	status := strings.TrimPrefix(name, "response.")
	switch status {
	case "completed", "incomplete", "failed":
		r.ended, r.status = true, []byte(`"`+status+`"`)
	}
	r.response(response)
}

func (r *reader) response(response []byte) {
	var output, details, problem []byte
	for w := walkObject(response); w.next(); {
		switch string(w.key) {
		case "model":
			keep(&r.model, w.value)
		case "usage":
			keep(&r.usage, w.value)
		case "status":
			keep(&r.status, w.value)
		case "incomplete_details":
			details = w.value
		case "error":
			problem = w.value
		case "output":
			output = w.value
		}
	}
	for w := walkObject(details); w.next(); {
		if string(w.key) == "reason" {
			keep(&r.finish, w.value)
		}
	}
	r.fail(problem)
	switch string(r.status) {
	case `"failed"`, `"cancelled"`:
		r.fail([]byte(`{"status":` + string(r.status) + `}`))
	}
	// What was streamed comes again: either count is that of all.
	r.output = 0
	for items := walkList(output); items.next(); {
		r.output += r.responseItem(items.value)
	}
}

// responseItem notes a call, and returns how much text an item of the output has.
func (r *reader) responseItem(item []byte) (text int64) {
	for w := walkObject(item); w.next(); {
		switch string(w.key) {
		case "type":
			r.calls = r.calls || string(w.value) == `"function_call"`
		case "content", "summary":
			text += textIn(w.value, partDepth)
		case "arguments", "input":
			text += argumentsLen(w.value)
		}
	}
	return text
}

func (r *reader) responsesFinish(reason string) llm.Finish {
	seen := llm.Stopped
	if r.calls {
		seen = llm.CallsMade
	}
	switch string(r.status) {
	case `"completed"`:
		return seen
	case `"incomplete"`:
		return ResponsesFinish(seen, reason)
	}
	return ""
}
