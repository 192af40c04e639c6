package wire

// geminiChunk reads a chunk of an answer, or one in one piece.
func (r *reader) geminiChunk(data []byte) {
	var candidates, usage, model, feedback, problem []byte
	w := walkObject(data)
	for w.next() {
		switch string(w.key) {
		case "candidates":
			candidates = w.value
		case "usageMetadata":
			usage = w.value
		case "modelVersion":
			model = w.value
		case "promptFeedback":
			feedback = w.value
		case "error":
			problem = w.value
		}
	}
	if !w.whole {
		return
	}
	keep(&r.model, model)
	keep(&r.usage, usage)
	r.fail(problem)
	for c := walkList(candidates); c.next(); {
		r.geminiCandidate(c.value)
	}
	for f := walkObject(feedback); f.next(); {
		if string(f.key) == "blockReason" && isSet(f.value) {
			r.blocked, r.ended = true, true
		}
	}
}

func (r *reader) geminiCandidate(candidate []byte) {
	var index, reason []byte
	for w := walkObject(candidate); w.next(); {
		switch string(w.key) {
		case "index":
			index = w.value
		case "finishReason":
			reason = w.value
		case "content":
			r.geminiContent(w.value)
		}
	}
	if string(reason) == `"FINISH_REASON_UNSPECIFIED"` {
		return
	}
	r.keepReason(reason, index)
	r.ended = r.ended || len(r.finish) > 0
}

func (r *reader) geminiContent(content []byte) {
	for w := walkObject(content); w.next(); {
		if string(w.key) != "parts" {
			continue
		}
		for parts := walkList(w.value); parts.next(); {
			r.geminiPart(parts.value)
		}
	}
}

func (r *reader) geminiPart(part []byte) {
	for w := walkObject(part); w.next(); {
		switch string(w.key) {
		case "text":
			r.text += textLen(w.value)
		case "functionCall":
			r.calls = true
			for call := walkObject(w.value); call.next(); {
				if string(call.key) == "args" {
					r.text += argumentsLen(call.value)
				}
			}
		}
	}
}
