package wire

// chatChunk reads a chunk of a chat completion, or one in one piece.
func (r *reader) chatChunk(data []byte) {
	if string(data) == "[DONE]" {
		r.ended = true
		return
	}
	var choices, usage, more, problem, object, model []byte
	w := walkObject(data)
	for w.next() {
		switch string(w.key) {
		case "choices":
			choices = w.value
		case "usage":
			usage = w.value
		case "x_groq":
			more = w.value
		case "error":
			problem = w.value
		case "object":
			object = w.value
		case "model":
			model = w.value
		}
	}
	if !w.whole {
		return
	}
	keep(&r.model, model)
	for c := walkList(choices); c.next(); {
		r.chatChoice(c.value)
	}
	// Some have the usage in places of their own; where it is in both, this one counts.
	for m := walkObject(more); m.next(); {
		if string(m.key) == "usage" {
			keep(&r.usage, m.value)
		}
	}
	keep(&r.usage, usage)
	r.fail(problem)
	if string(object) == `"error"` {
		r.fail(data)
	}
}

func (r *reader) chatChoice(choice []byte) {
	var index, reason []byte
	for w := walkObject(choice); w.next(); {
		switch string(w.key) {
		case "index":
			index = w.value
		case "finish_reason":
			reason = w.value
		case "delta", "message":
			r.chatMessage(w.value)
		case "text":
			r.text += textLen(w.value)
		case "usage":
			keep(&r.usage, w.value)
		case "error":
			r.fail(w.value)
		}
	}
	// What gateways call an error is no reason of the model's.
	if string(reason) == `"error"` {
		return
	}
	r.keepReason(reason, index)
	r.ended = r.ended || len(r.finish) > 0
}

func (r *reader) chatMessage(msg []byte) {
	var thought int64
	for w := walkObject(msg); w.next(); {
		switch string(w.key) {
		case "content", "refusal":
			r.text += textIn(w.value, partDepth)
		case "reasoning_content", "reasoning":
			// Where both are there, they are the same.
			thought = max(thought, textIn(w.value, partDepth))
		case "tool_calls":
			for calls := walkList(w.value); calls.next(); {
				r.calls = true
				r.chatCall(calls.value)
			}
		case "function_call":
			r.chatFunction(w.value)
		}
	}
	r.text += thought
}

func (r *reader) chatCall(call []byte) {
	for w := walkObject(call); w.next(); {
		if string(w.key) == "function" {
			r.chatFunction(w.value)
		}
	}
}

func (r *reader) chatFunction(function []byte) {
	for w := walkObject(function); w.next(); {
		if string(w.key) == "arguments" {
			r.text += argumentsLen(w.value)
		}
	}
}
