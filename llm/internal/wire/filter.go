package wire

import (
	"bytes"
	"encoding/json"
	"io"
)

// maxEvent bounds the events that a filter looks at.
const maxEvent = 1 << 20

// UsageFilter passes a chat stream on without the chunk that has only the usage, which an
// agent did not ask for: see [Request.Edit]. Every other byte is passed on as it is, each
// event when its last byte is there. An event of more than 1 MiB is passed on as it comes.
type UsageFilter struct {
	to  io.Writer
	err error // of to; after it nothing is passed on

	event   []byte // what there is of an event that has not ended
	through bool   // the event is too long to be looked at
	line    bool   // a line has begun
	cr      bool   // the last byte was a carriage return: a line feed belongs to it
	ended   bool   // that carriage return ended an event
	passed  bool   // the last event was passed on
	out     []byte

	fields events
	found  bool // the event that was read is one of usage
}

// NewUsageFilter passes a chat stream on to w. At the end of the stream [UsageFilter.Flush]
// must be called.
func NewUsageFilter(w io.Writer) *UsageFilter {
	f := &UsageFilter{to: w}
	f.fields.on = func(data []byte, failed bool) { f.found = !failed && onlyUsage(data) }
	return f
}

// Write takes the next bytes of the stream. What it passes on is one Write of w at most, whose
// error it returns.
func (f *UsageFilter) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	f.out = reuse(f.out)
	start, at := 0, 0 // of the event, and of the line
	for b := breaksOf(p); at < len(p); {
		if f.cr && p[at] == '\n' {
			at++
			if f.ended && f.passed {
				f.out = append(f.out, '\n')
			}
			if f.ended {
				start = at
			}
			f.cr, f.ended = false, false
			continue
		}
		f.cr, f.ended = false, false
		end := b.next(at)
		if end < 0 {
			f.line = true
			break
		}
		blank := end == at && !f.line
		at, f.line, f.cr = end+1, false, p[end] == '\r'
		if !blank {
			continue
		}
		if f.cr && at < len(p) && p[at] == '\n' {
			at, f.cr = at+1, false
		}
		f.end(p[start:at])
		start, f.ended = at, f.cr
	}
	f.keep(p[start:])
	return f.pass(len(p))
}

// end takes the rest of an event that is whole.
func (f *UsageFilter) end(rest []byte) {
	if f.through {
		f.out, f.through, f.passed = append(f.out, rest...), false, true
		return
	}
	event := rest
	if len(f.event) > 0 {
		f.event = append(f.event, rest...)
		event = f.event
	}
	f.passed = !f.usage(event)
	if f.passed {
		f.out = append(f.out, event...)
	}
	f.event = reuse(f.event)
}

// keep holds back what may be the beginning of an event.
func (f *UsageFilter) keep(p []byte) {
	if !f.through && len(f.event)+len(p) <= maxEvent {
		f.event = append(f.event, p...)
		return
	}
	f.out = append(append(f.out, f.event...), p...)
	f.event, f.through = nil, true
}

func (f *UsageFilter) pass(n int) (int, error) {
	if len(f.out) > 0 {
		if _, f.err = f.to.Write(f.out); f.err != nil {
			return 0, f.err
		}
	}
	return n, nil
}

// Flush passes on what is left at the end of the stream, unless that is the chunk that is
// not to be seen, and returns the error of the writer, if it had one.
func (f *UsageFilter) Flush() error {
	if f.err != nil || len(f.event) == 0 {
		return f.err
	}
	f.out = reuse(f.out)
	f.end(nil)
	_, err := f.pass(0)
	return err
}

// usage tells whether an event is the chunk that has only the usage.
func (f *UsageFilter) usage(event []byte) bool {
	if len(event) > maxEvent || !bytes.Contains(event, []byte(`"usage"`)) {
		return false
	}
	f.found = false
	f.fields.write(event)
	f.fields.end()
	f.fields.cr = false
	return f.found
}

// onlyUsage tells of a chunk that it has a usage, and neither a choice nor an error.
func onlyUsage(data []byte) bool {
	none, usage := false, false
	w := walkObject(data)
	for w.next() {
		switch string(w.key) {
		case "choices":
			choices := walkList(w.value)
			none = isNull(w.value) || !choices.next() && choices.whole
		case "usage":
			usage = isObject(w.value)
		case "error":
			if isSet(w.value) {
				return false
			}
		}
	}
	return none && usage && json.Valid(data)
}
