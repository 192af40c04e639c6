// Package cast reads recordings of terminals, asciicast files of version 2 and 3, and
// shows what was on the screen. What they hold is taken to be hostile.
package cast

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

const (
	// mostBytes is how much of a recording is read.
	mostBytes = 32 << 20
	// longestLine is that of an event.
	longestLine = 4 << 20
	// A screen has at most this size.
	mostColumns, mostRows = 500, 200
	// frameTime is how long a frame is there at least, in seconds: what is written in
	// shorter time is seen at once.
	frameTime = 0.05
)

// Recording is what a file holds.
type Recording struct {
	Columns, Rows int     // of the screen where it begins
	Seconds       float64 // that it takes
	// Problem says why the file was not read to its end; empty if it was.
	Problem string
	frames  []frame
}

// frame is what changes the screen at one moment.
type frame struct {
	at     float64
	events []event
}

// event is output, or where text is empty a new size of the screen.
type event struct {
	text          string
	columns, rows int
}

// header is the first line of a file, of either version.
type header struct {
	Version int
	Width   int // of version 2
	Height  int
	Term    struct{ Cols, Rows int } // of version 3
}

// ErrNoRecording is the error for what does not begin as a recording does.
var ErrNoRecording = errors.New("this is no asciicast recording of version 2 or 3")

// Read reads a recording. What is wrong behind its first line is its problem, and what was
// before that is kept: a file whose recorder was killed ends anywhere.
func Read(r io.Reader) (*Recording, error) {
	lines := bufio.NewScanner(io.LimitReader(r, mostBytes))
	lines.Buffer(nil, longestLine)
	if !lines.Scan() {
		return nil, errors.Join(ErrNoRecording, lines.Err())
	}
	var h header
	if err := json.Unmarshal(lines.Bytes(), &h); err != nil || h.Version != 2 && h.Version != 3 {
		return nil, ErrNoRecording
	}
	if h.Version == 3 {
		h.Width, h.Height = h.Term.Cols, h.Term.Rows
	}
	rec := &Recording{Columns: within(h.Width, 80, mostColumns), Rows: within(h.Height, 24, mostRows)}
	size, now := len(lines.Bytes()), 0.0
	for n := 2; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		size += len(lines.Bytes()) + 1
		if len(line) == 0 || line[0] == '#' { // a comment, of version 3
			continue
		}
		at, e, ok, err := parseEvent(line)
		if err != nil {
			rec.Problem = fmt.Sprintf("line %d is no event; what is behind it is not shown", n)
			break
		}
		if h.Version == 3 { // times are since the event before
			at += now
		}
		now = max(now, at)
		if ok {
			rec.add(now, e)
		}
	}
	if err := lines.Err(); err != nil {
		rec.Problem = "a line is too long; what is behind it is not shown"
	} else if size >= mostBytes {
		rec.Problem = fmt.Sprintf("it is longer than %d MiB; what is behind them is not shown", mostBytes>>20)
	}
	rec.Seconds = now
	return rec, nil
}

// parseEvent is ok for one that changes the screen.
func parseEvent(line []byte) (at float64, e event, ok bool, err error) {
	var parts []json.RawMessage
	var kind, data string
	if err := json.Unmarshal(line, &parts); err != nil || len(parts) < 3 {
		return 0, e, false, errors.Join(ErrNoRecording, err)
	}
	if err := errors.Join(json.Unmarshal(parts[0], &at), json.Unmarshal(parts[1], &kind), json.Unmarshal(parts[2], &data)); err != nil {
		return 0, e, false, err
	}
	if math.IsNaN(at) || at < 0 || at > 1e9 {
		return 0, e, false, ErrNoRecording
	}
	switch kind {
	case "o":
		return at, event{text: data}, data != "", nil
	case "r":
		columns, rows, _ := strings.Cut(data, "x")
		c, errC := strconv.Atoi(columns)
		r, errR := strconv.Atoi(rows)
		return at, event{columns: within(c, 80, mostColumns), rows: within(r, 24, mostRows)}, errC == nil && errR == nil, nil
	}
	return at, e, false, nil // input, marks, the exit code
}

// within is n, or usual where that is no size.
func within(n, usual, most int) int {
	if n < 1 {
		return usual
	}
	return min(n, most)
}

// add puts an event into the last frame, or into a new one.
func (r *Recording) add(at float64, e event) {
	if n := len(r.frames); n > 0 && at-r.frames[n-1].at < frameTime {
		r.frames[n-1].events = append(r.frames[n-1].events, e)
		return
	}
	r.frames = append(r.frames, frame{at, []event{e}})
}

// Len is how many frames there are.
func (r *Recording) Len() int { return len(r.frames) }

// FrameAt is the last frame that is there at a time in seconds, or the first.
func (r *Recording) FrameAt(seconds float64) int {
	n := 0
	for i, f := range r.frames {
		if f.at <= seconds {
			n = i
		}
	}
	return n
}
