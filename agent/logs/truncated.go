package logs

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

// maxNotes is how many files are named in Converted.Truncated.
const maxNotes = 20

// note says of a file what is missing of it; what was said of it before is replaced,
// since a file may be read more than once. Empty text says nothing.
func (d *Dir) note(file, text string) {
	if text == "" {
		return
	}
	if _, known := d.notes[file]; !known {
		d.noted = append(d.noted, file)
	}
	if d.notes == nil {
		d.notes = map[string]string{}
	}
	d.notes[file] = text
}

// truncated is what the notes come to, a line for each file.
func (d *Dir) truncated() []string {
	var lines []string
	for i, file := range d.noted {
		if i == maxNotes {
			return append(lines, fmt.Sprintf("%d more files are not whole", len(d.noted)-i))
		}
		lines = append(lines, d.notes[file])
	}
	return lines
}

// Read returns the content of a file; what is missing, no file or too large is empty.
func (d *Dir) Read(name string) []byte {
	data, err := bounded.ReadIn(d.path, name, min(maxLog, d.left))
	switch {
	case errors.Is(err, bounded.ErrTooLarge) && d.left < maxLog:
		d.note(name, fmt.Sprintf("%s is not read: what is read of the logs would be more than %d bytes", name, maxLogs))
	case errors.Is(err, bounded.ErrTooLarge):
		d.note(name, fmt.Sprintf("%s is not read: it has more than %d bytes", name, maxLog))
	}
	if err != nil {
		return nil
	}
	d.left -= int64(len(data))
	return data
}

// Document returns the JSON object that a file is, nil for what is none.
func (d *Dir) Document(name string) *value.Object {
	data := bytes.TrimSpace(d.Read(name))
	o, ok := decode(string(data)).(*value.Object)
	if !ok && bytes.HasPrefix(data, []byte("{")) {
		d.note(name, name+" is not a whole JSON document")
	}
	return o
}

// Records returns the JSON objects of a file with one on each line; other lines are
// skipped. It notes what is missing of the file once all of it has been read.
func (d *Dir) Records(name string) iter.Seq[*value.Object] {
	return func(yield func(*value.Object) bool) {
		var s scan
		for line := range bytes.Lines(d.Read(name)) {
			o, ok := decode(string(line)).(*value.Object)
			s.line(line, ok)
			if ok && !yield(o) {
				return
			}
		}
		d.note(name, s.text(name))
	}
}

// scan looks for what is missing of a file of records. Programs print warnings of
// any kind between the records: what does not begin as a record does is none.
type scan struct {
	records, broken int
	unfinished      bool   // the last line
	marked          bool   // at least one cut of this program's
	cut             uint64 // bytes, by its marks
	before, after   bool   // the line before is broken, or is a mark
}

func (s *scan) line(line []byte, record bool) {
	if n, ok := cutMark(line); ok {
		s.marked, s.cut, s.after = true, s.cut+n, true
		if s.before { // which is the cut's doing
			s.broken--
		}
		s.before = false
		return
	}
	before := false
	switch ended := bytes.HasSuffix(line, []byte("\n")); {
	case record:
		s.records++
	case line[0] != '{':
	case !ended:
		s.unfinished = true
	case s.after || len(bytes.TrimSpace(line)) == 1:
		// The rest of a line that was cut, or the first line of a document.
	default:
		s.broken++
		before = true
	}
	s.before, s.after = before, false
}

func (s *scan) text(name string) string {
	var parts []string
	if s.marked {
		parts = append(parts, fmt.Sprintf("%d bytes of %s were cut out when it was written", s.cut, name))
	}
	switch {
	case s.records == 0 || s.broken == 0: // without records it is a file of another kind
	case s.broken == 1:
		parts = append(parts, "1 line of "+name+" is no JSON")
	default:
		parts = append(parts, strconv.Itoa(s.broken)+" lines of "+name+" are no JSON")
	}
	if s.unfinished {
		parts = append(parts, "the last line of "+name+" is cut off")
	}
	return strings.Join(parts, "; ")
}

var cutMarks = regexp.MustCompile("^" + strings.Replace(regexp.QuoteMeta(strings.TrimSpace(bounded.CutMark(0))), "0", "([0-9]{1,18})", 1) + "$")

// cutMark is how many bytes were dropped where the line stands.
func cutMark(line []byte) (uint64, bool) {
	if line[0] != '[' {
		return 0, false
	}
	m := cutMarks.FindSubmatch(bytes.TrimSpace(line))
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(string(m[1]), 10, 64)
	return n, err == nil
}
