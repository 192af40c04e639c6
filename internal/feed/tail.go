package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
)

// TailInterval is how often a log is looked at. (Outcome mapping, section 15.3.)
const TailInterval = 3 * time.Second

// maxCapture is how much of a log's end is looked at, in bytes: with the mark of a cut it
// is less than a message may have.
const maxCapture = maxMessage - maxName

// Follow is a log that an agent writes.
type Follow struct {
	Task, Trial string
	// Dir and Name are the file, below a directory that a sandbox may write to. It need
	// not be there yet.
	Dir, Name string
	// Tick says when to look, such as the channel of a ticker of TailInterval.
	Tick <-chan time.Time
}

// Tail sends what is added to a log, whole lines of it, until ctx ends, and then the rest.
// A log that does not begin any more as it did is sent anew. Of what comes between two
// ticks, or at once, at most the last 63 KiB are sent, behind a mark.
//
// The error says why the log could not be read when that was tried the last time. A log
// that is not there is none.
func (f *Feed) Tail(ctx context.Context, log Follow) error {
	if f.logs == nil {
		return nil
	}
	var t tail
	for {
		last := false
		select {
		case <-ctx.Done():
			last = true
		case <-log.Tick:
		}
		window, from, err := readEnd(log.Dir, log.Name)
		if err == nil {
			f.Delta(log.Task, log.Trial, t.next(window, from, last))
		}
		if last {
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return err
		}
	}
}

// readEnd reads the last maxCapture bytes of a file; from is where they begin.
func readEnd(dir, name string) (window []byte, from int64, err error) {
	file, err := bounded.OpenIn(dir, name)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	from = max(0, info.Size()-maxCapture)
	window, err = io.ReadAll(io.NewSectionReader(file, from, maxCapture))
	if err != nil {
		return nil, 0, fmt.Errorf("reading %q: %w", file.Name(), err)
	}
	return window, from, nil
}

// tail knows what of a log has been sent.
type tail struct {
	window []byte // the end of the log when it was read before
	from   int64  // where that began
	sent   int64  // up to where everything was sent, or cut
}

// lineEnds also has what programs begin a line anew with, that show how far they are.
const lineEnds = "\n\r"

// next is what is to be sent of a log whose end is window, which begins at from. What has
// no line end stays for the next time, unless this is the last: the rest may be the rest
// of a secret.
func (t *tail) next(window []byte, from int64, last bool) string {
	if !t.extendedBy(window, from) {
		t.sent = 0
	}
	t.window, t.from = window, from
	text, begin := window[max(0, t.sent-from):], max(t.sent, from)
	if begin > t.sent {
		// A part of a line is left, which may be a part of a secret.
		rest := bytes.IndexAny(text, lineEnds) + 1
		if rest == 0 {
			return ""
		}
		text, begin = text[rest:], begin+int64(rest)
	}
	if !last {
		text = text[:bytes.LastIndexAny(text, lineEnds)+1]
	}
	if len(text) == 0 {
		return ""
	}
	mark := ""
	if begin > t.sent {
		mark = bounded.CutMark(begin - t.sent)[1:]
	}
	t.sent = begin + int64(len(text))
	return mark + string(text)
}

// extendedBy reports whether a log is the one that was read before, with or without more
// at its end, as far as both ends show.
func (t *tail) extendedBy(window []byte, from int64) bool {
	end := t.from + int64(len(t.window))
	begin := max(t.from, from)
	switch {
	case from+int64(len(window)) < end:
		return false
	case begin >= end: // nothing of one is in the other
		return true
	}
	return bytes.Equal(t.window[begin-t.from:], window[begin-from:end-from])
}
