package wire

// anthropicEvent reads an event of a message, or a message in one piece.
func (r *reader) anthropicEvent(data []byte) {
	var kind, message, block, delta, usage, problem []byte
	w := walkObject(data)
	for w.next() {
		switch string(w.key) {
		case "type":
			kind = w.value
		case "message":
			message = w.value
		case "content_block":
			block = w.value
		case "delta":
			delta = w.value
		case "usage":
			usage = w.value
		case "error":
			problem = w.value
		}
	}
	if !w.whole {
		return
	}
	switch string(kind) {
	case `"content_block_delta"`, `"message_delta"`:
		r.anthropicDelta(delta)
		r.addUsage(usage)
	case `"content_block_start"`:
		r.anthropicBlock(block)
	case `"message_start"`:
		r.anthropicMessage(message)
	case `"message_stop"`:
		r.ended = true
	case `"message"`:
		r.anthropicMessage(data)
	default:
		r.anthropicFailure(kind, problem, data)
	}
}

// anthropicFailure reads an error, which may be there without a type.
func (r *reader) anthropicFailure(kind, problem, data []byte) {
	r.fail(problem)
	if string(kind) == `"error"` {
		r.fail(data)
	}
}

func (r *reader) anthropicMessage(message []byte) {
	for w := walkObject(message); w.next(); {
		switch string(w.key) {
		case "model":
			keep(&r.model, w.value)
		case "usage":
			r.addUsage(w.value)
		case "stop_reason":
			r.keepReason(w.value, nil)
		case "content":
			for blocks := walkList(w.value); blocks.next(); {
				r.anthropicBlock(blocks.value)
			}
		}
	}
}

func (r *reader) anthropicBlock(block []byte) {
	for w := walkObject(block); w.next(); {
		switch string(w.key) {
		case "type":
			r.calls = r.calls || string(w.value) == `"tool_use"`
		case "text", "thinking":
			r.text += textLen(w.value)
		case "input":
			r.text += argumentsLen(w.value)
		}
	}
}

// anthropicDelta reads what is added to a block or, at the end, to the message.
func (r *reader) anthropicDelta(delta []byte) {
	for w := walkObject(delta); w.next(); {
		switch string(w.key) {
		case "text", "thinking", "partial_json":
			r.text += textLen(w.value)
		case "stop_reason":
			r.keepReason(w.value, nil)
		}
	}
}

// addUsage takes what is told of the usage. All counts are of the whole message so far: of
// each, the last one that was told counts.
func (r *reader) addUsage(usage []byte) {
	if !isObject(usage) || len(usage) > maxKept {
		return
	}
	told := Object(usage)
	if told != nil && r.parts == nil {
		r.parts = Members{}
	}
	for _, key := range []string{anthropicInput, anthropicOutput, anthropicRead, anthropicWrite, "cost"} {
		if !isNull(told[key]) {
			r.parts[key] = told[key]
		}
	}
}
