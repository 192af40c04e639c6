package external

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// FuzzSplitter: the lines are the same however they are cut.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte("a\n\nb \r\nc"), byte(1))
	f.Add([]byte("\n"), byte(3))
	f.Fuzz(func(t *testing.T, text []byte, step byte) {
		var got, want []string
		s := &splitter{each: func(line []byte) { got = append(got, string(line)) }, long: func() { t.Error("a line is too long") }}
		for part := range slices.Chunk(text, int(step)+1) {
			if n, err := s.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		s.finish()
		for line := range bytes.SplitSeq(text, []byte("\n")) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				want = append(want, string(line))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestLongLine: of a line that is too long nothing is kept, and the next one counts.
func TestLongLine(t *testing.T) {
	t.Parallel()
	var lines []string
	long := 0
	s := &splitter{each: func(line []byte) { lines = append(lines, string(line)) }, long: func() { long++ }}
	for range 20 {
		_, _ = s.Write(bytes.Repeat([]byte("x"), 1<<20))
	}
	_, _ = s.Write([]byte("y\nz\n"))
	if long != 1 || !slices.Equal(lines, []string{"z"}) || cap(s.line) > maxLine {
		t.Errorf("%d lines too long, got %q", long, lines)
	}
}

// FuzzParseRequest: whatever is taken for a request can be carried out and answered.
func FuzzParseRequest(f *testing.F) {
	for _, line := range []string{
		`{"id":1,"type":"exec","command":"x","env":{"a":"b"}}`, `{"id":"a","type":"write","path":"p","content_base64":"eA=="}`,
		`{"type":"usage","cost_usd":1}`, `{"id":null,"type":"read"}`, `{"id":[],"type":"read"}`, `{"type":"done"}`, `[]`, `null`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseRequest(line)
		if err != nil {
			if r.Type != "" || r.Command != "" || len(r.ID) > maxID {
				t.Errorf("%v with %+v", err, r)
			}
			return
		}
		if r.ID == nil && r.Type != "done" && r.Type != "usage" {
			t.Errorf("a request without an id: %+v", r)
		}
		if r.Type == "exec" && strings.TrimSpace(r.Command) == "" || r.Type == "write" && r.Content == nil && r.ContentBase64 == nil {
			t.Errorf("there is nothing to do: %+v", r)
		}
	})
}
