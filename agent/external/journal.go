package external

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/internal/bounded"
)

// Who said a line of a journal.
const (
	fromAgent   = "agent"
	fromProctor = "proctor"
)

// journal is a file with what was said, one object a line, redacted and within bounds. It
// may be written to by several goroutines.
type journal struct {
	lines  *bounded.Lines
	redact func(io.Writer) io.WriteCloser
	now    func() time.Time
}

// entry is a line. Of a message that is too long, or is no JSON, only what is known of it
// is there.
type entry struct {
	At      string          `json:"at"`
	From    string          `json:"from"`
	Message json.RawMessage `json:"message,omitempty"`
	Text    string          `json:"text,omitempty"`
	Omitted int             `json:"omitted_bytes,omitempty"`
}

func newJournal(env agent.Env, name string, now func() time.Time) (*journal, error) {
	lines, err := bounded.CreateLines(env.LogDir, name, env.OutputLimit, func(c bounded.Cut) []byte {
		return encode(message{"omitted_lines": c.Lines, "omitted_bytes": c.Bytes})
	})
	if err != nil {
		return nil, fmt.Errorf("keeping what the agent says: %w", err)
	}
	return &journal{lines: lines, redact: env.Redact, now: now}, nil
}

// add writes down a message, which is a line with or without its end.
func (j *journal) add(from string, line []byte) {
	line = bytes.TrimSpace(line)
	e := entry{At: j.now().UTC().Format("2006-01-02T15:04:05.000Z"), From: from}
	switch {
	case int64(len(line)) > j.lines.Longest()-entryRoom:
		e.Omitted = len(line)
	case json.Valid(line):
		e.Message = line
	default:
		e.Text = strings.ToValidUTF8(string(line), "\ufffd")
	}
	data := j.clean(encode(e))
	if int64(len(data)) > j.lines.Longest() { // text that had to be escaped
		e.Message, e.Text, e.Omitted = nil, "", len(line)
		data = encode(e)
	}
	j.lines.Add(data)
}

// tooLong writes down that a message was not read.
func (j *journal) tooLong(from string) {
	j.lines.Add(encode(entry{At: j.now().UTC().Format("2006-01-02T15:04:05.000Z"), From: from, Omitted: maxLine}))
}

// entryRoom is what an entry takes besides its message, in bytes.
const entryRoom = 200

func (j *journal) clean(data []byte) []byte {
	if j.redact == nil {
		return data
	}
	var kept bytes.Buffer
	w := j.redact(&kept)
	_, err := w.Write(data)
	if closeErr := w.Close(); err != nil || closeErr != nil {
		return nil
	}
	return kept.Bytes()
}

func (j *journal) close() error {
	if err := j.lines.Close(); err != nil {
		return fmt.Errorf("keeping what the agent says: %w", err)
	}
	return nil
}

// message is an object of a protocol.
type message map[string]any

// encode is a value as a line of JSON. What is encoded here has no channels, functions
// or numbers that JSON lacks.
func encode(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("null\n")
	}
	return out.Bytes()
}

// maxLine is the length of the longest line that is read of an agent, in bytes: a file of
// the largest size in base64, with room to spare.
const maxLine = 8 << 20

// splitter is a writer that hands on lines, without their ends. Lines must not be kept. Of
// a line that is longer than maxLine nothing is handed on; long is called instead.
type splitter struct {
	each func(line []byte)
	long func()

	line     []byte
	skipping bool
}

func (s *splitter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		part, rest, ended := bytes.Cut(p, []byte("\n"))
		if !s.skipping && len(s.line)+len(part) > maxLine {
			s.line, s.skipping = nil, true
			s.long()
		}
		if !s.skipping {
			s.line = append(s.line, part...)
		}
		if !ended {
			return n, nil
		}
		s.finish()
		p = rest
	}
}

// finish hands on a line that has no end.
func (s *splitter) finish() {
	if line := bytes.TrimSpace(s.line); len(line) > 0 {
		s.each(line)
	}
	s.line, s.skipping = s.line[:0], false
}
