package wire

import "bytes"

// breaks finds the line breaks of a text, in time linear in the text.
type breaks struct {
	text []byte
	// nl and cr are the next of their kind as far as they have been looked for: both
	// are found anew only when they were passed.
	nl, cr int
}

func breaksOf(text []byte) *breaks { return &breaks{text: text, nl: -1, cr: -1} }

// next is where the next line break from a place on is; -1 for none.
func (b *breaks) next(from int) int {
	if b.nl < from {
		b.nl = indexFrom(b.text, '\n', from)
	}
	if b.cr < from {
		b.cr = indexFrom(b.text, '\r', from)
	}
	if i := min(b.nl, b.cr); i < len(b.text) {
		return i
	}
	return -1
}

// indexFrom is where c is from a place on, or the length of the text.
func indexFrom(text []byte, c byte, from int) int {
	if i := bytes.IndexByte(text[from:], c); i >= 0 {
		return from + i
	}
	return len(text)
}

// field reads a line of an event: the name of the field, empty for a comment, and its value.
func field(line []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(line, []byte(":"))
	return name, bytes.TrimPrefix(value, []byte(" "))
}

// events puts the events of a stream together, from lines that come in pieces.
type events struct {
	// on is called for each event that has data. The data is only valid in the call.
	on func(data []byte, failed bool)

	line   []byte // what there is of a line that has not ended
	long   bool   // that line is beyond the bound
	cr     bool   // the last byte was a carriage return: a line feed belongs to it
	data   []byte
	some   bool // there is data, which may be empty
	drop   bool // the data is beyond the bound
	failed bool // the event is called an error
}

// maxLine bounds a line of a stream, and the data of an event. What is longer is not read.
const maxLine = 8 << 20

// keepLine is how much memory is kept from one line for the next.
const keepLine = 1 << 20

func (e *events) write(p []byte) {
	b := breaksOf(p)
	for at := 0; at < len(p); {
		if e.cr && p[at] == '\n' {
			e.cr = false
			at++
			continue
		}
		e.cr = false
		end := b.next(at)
		if end < 0 {
			e.keep(p[at:])
			return
		}
		line := p[at:end]
		if len(e.line) > 0 || e.long {
			e.keep(line)
			line = e.line
		}
		e.cr = p[end] == '\r'
		at = end + 1
		e.endLine(line)
	}
}

// keep adds to a line that has not ended.
func (e *events) keep(p []byte) {
	if e.long || len(e.line)+len(p) > maxLine {
		e.line, e.long = nil, true
		return
	}
	e.line = append(e.line, p...)
}

func (e *events) endLine(line []byte) {
	if !e.long && len(line) <= maxLine {
		e.take(line)
	}
	e.line, e.long = reuse(e.line), false
}

func (e *events) take(line []byte) {
	if len(line) == 0 {
		e.dispatch()
		return
	}
	name, value := field(line)
	switch string(name) {
	case "data":
		if len(e.data)+len(value) >= maxLine {
			e.data, e.drop = nil, true
			return
		}
		if e.some {
			e.data = append(e.data, '\n')
		}
		e.data, e.some = append(e.data, value...), true
	case "event":
		e.failed = string(value) == "error"
	case "error": // which some servers have in place of data
		e.data, e.some, e.failed = append(e.data[:0], value...), true, true
	}
}

func (e *events) dispatch() {
	if e.some && !e.drop {
		e.on(e.data, e.failed)
	}
	e.data, e.some, e.drop, e.failed = reuse(e.data), false, false, false
}

// end takes what is left at the end of the stream.
func (e *events) end() {
	if len(e.line) > 0 {
		e.endLine(e.line)
	}
	e.dispatch()
}

func reuse(b []byte) []byte {
	if cap(b) > keepLine {
		return nil
	}
	return b[:0]
}
