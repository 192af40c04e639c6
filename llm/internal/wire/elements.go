package wire

// elements takes the elements of a JSON list that comes in pieces: those that are objects
// or lists themselves.
type elements struct {
	// on is called for each. The element is only valid in the call.
	on func(element []byte)

	depth   int
	text    []byte // the element that has begun
	long    bool   // it is beyond the bound
	quoted  bool
	escaped bool
	closed  bool
	odd     bool // it is not closed as it should be, or something comes after it
}

// write takes the next bytes; the first one ever is the bracket of the list.
func (e *elements) write(p []byte) {
	start := 0 // of what is not yet in text
	for i, c := range p {
		switch {
		case e.closed:
			e.odd = e.odd || skipSpace(p[i:i+1], 0) == 0
			continue
		case e.escaped:
			e.escaped = false
			continue
		case e.quoted:
			e.escaped, e.quoted = c == '\\', c != '"'
			continue
		}
		switch c {
		case '"':
			e.quoted = true
		case '{', '[':
			if e.depth++; e.depth == 2 {
				start = i
			}
		case '}', ']':
			e.depth--
			if e.depth == 1 {
				e.keep(p[start : i+1])
				e.element()
			}
			e.closed = e.depth == 0
			e.odd = e.odd || e.closed && c != ']'
		}
	}
	if e.depth > 1 {
		e.keep(p[start:])
	}
}

func (e *elements) keep(p []byte) {
	if e.long || len(e.text)+len(p) > maxDocument {
		e.text, e.long = nil, true
		return
	}
	e.text = append(e.text, p...)
}

func (e *elements) element() {
	if !e.long {
		e.on(e.text)
	}
	e.text, e.long = reuse(e.text), false
}
