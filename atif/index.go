package atif

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/proctor-run/proctor/value"
)

// Index says where the steps of a trajectory are in its file, so that some of them can be
// read without the others: of a long file only what is shown is in memory.
type Index struct {
	steps []span
	rest  []byte // the document without its steps
}

// span is a part of a file.
type span struct{ from, to int64 }

// longestPart bounds one step, and all that is no step, in bytes.
const longestPart = 64 << 20

// NewIndex reads a file once, from its beginning to its end, and calls each with every
// step, as it stands there; what each returns ends the reading. The error is an [*Invalid]
// for what is no JSON object, or of reading. Whether it is a trajectory shows where steps
// are read.
func NewIndex(r io.Reader, each func(step value.Value) error) (*Index, error) {
	s := &indexer{r: bufio.NewReaderSize(r, 256<<10), each: each}
	x := &Index{}
	if err := s.document(x); err != nil {
		return nil, err
	}
	if _, err := ParseJSON(x.rest); err != nil {
		return nil, err
	}
	return x, nil
}

// Len is how many steps there are.
func (x *Index) Len() int { return len(x.steps) }

// Read reads the steps from one to another, of which the first of all is 1, and what
// surrounds them. Subagents and the rest of the document are there as [Parse] reads them.
// The error is an [*Invalid], or of reading.
func (x *Index) Read(r io.ReaderAt, first, last int) (*Trajectory, error) {
	v, err := ParseJSON(x.rest)
	if err != nil {
		return nil, err
	}
	document, ok := v.(*value.Object)
	if !ok {
		return Decode(v)
	}
	steps, _ := document.Get("steps")
	if _, isList := steps.(value.List); isList { // without what was in it
		list := value.List{}
		for i := max(first, 1); i <= min(last, len(x.steps)); i++ {
			at := x.steps[i-1]
			data := make([]byte, at.to-at.from)
			if _, err := r.ReadAt(data, at.from); err != nil {
				return nil, fmt.Errorf("reading step %d: %w", i, err)
			}
			step, err := ParseJSON(data)
			if err != nil {
				return nil, err
			}
			list = append(list, step)
		}
		document.Set("steps", list)
	}
	return decodeFrom(document, max(first, 1))
}

// indexer goes through a document byte by byte. It takes what is no JSON for something, as
// long as it comes to an end: what it finds is parsed again.
type indexer struct {
	r    *bufio.Reader
	at   int64 // behind the last byte that was read
	each func(value.Value) error
	part bytes.Buffer // what is kept of what is read, while keeping
	keep bool
}

// next is the next byte.
func (s *indexer) next() (byte, error) {
	c, err := s.r.ReadByte()
	if errors.Is(err, io.EOF) {
		return 0, invalid("Invalid JSON: the file ends within the document")
	}
	if err != nil {
		return 0, fmt.Errorf("reading a trajectory: %w", err)
	}
	s.at++
	if s.keep {
		if s.part.Len() >= longestPart {
			return 0, invalid(fmt.Sprintf("a part of the trajectory is longer than %d MiB", longestPart>>20))
		}
		s.part.WriteByte(c)
	}
	return c, nil
}

// back puts the last byte back.
func (s *indexer) back() {
	_ = s.r.UnreadByte() // it follows next
	s.at--
	if s.keep {
		s.part.Truncate(s.part.Len() - 1)
	}
}

// solid is the next byte that is no space.
func (s *indexer) solid() (byte, error) {
	for {
		c, err := s.next()
		if err != nil || c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c, err
		}
	}
}

// document reads an object and takes the steps out of it.
func (s *indexer) document(x *Index) error {
	var rest bytes.Buffer
	c, err := s.solid()
	if err != nil {
		return err
	}
	if c != '{' {
		return invalid("Trajectory must be a JSON object/dict")
	}
	rest.WriteByte(c)
	for {
		key, end, err := s.key()
		if err != nil {
			return err
		}
		rest.Write(key)
		if end {
			break
		}
		isSteps, err := s.isSteps(key)
		if err != nil {
			return err
		}
		if isSteps {
			if x.steps, err = s.list(); err != nil {
				return err
			}
			rest.WriteString("[]")
		} else if err := s.copied(&rest); err != nil {
			return err
		}
		if rest.Len() > longestPart {
			return invalid(fmt.Sprintf("what surrounds the steps is longer than %d MiB", longestPart>>20))
		}
	}
	if _, err := s.solid(); err == nil {
		return invalid("Invalid JSON: something follows the document")
	} else if _, ended := errors.AsType[*Invalid](err); !ended {
		return err
	}
	x.rest = rest.Bytes()
	return nil
}

// key reads what stands before a member's value, or before the end of the object.
func (s *indexer) key() (text []byte, end bool, err error) {
	s.start()
	defer s.stop()
	for {
		c, err := s.solid()
		if err != nil {
			return nil, false, err
		}
		switch c {
		case '}', ':':
			return bytes.Clone(s.part.Bytes()), c == '}', nil
		case '"':
			if err := s.text(); err != nil {
				return nil, false, err
			}
		case ',':
		default:
			return nil, false, invalid(fmt.Sprintf("Invalid JSON: a name is expected at byte %d", s.at))
		}
	}
}

// isSteps reports whether a key is that of the steps, and a list follows.
func (s *indexer) isSteps(key []byte) (bool, error) {
	name, err := value.Decode(bytes.Trim(key, ", \t\r\n:"))
	if err != nil || name != value.Str("steps") {
		return false, nil //nolint:nilerr // what is no name is told by who parses it
	}
	c, err := s.solid()
	if err != nil {
		return false, err
	}
	s.back()
	return c == '[', nil
}

// list reads a list of steps.
func (s *indexer) list() ([]span, error) {
	steps := []span{}
	if _, err := s.solid(); err != nil { // the bracket
		return nil, err
	}
	for {
		c, err := s.solid()
		if err != nil {
			return nil, err
		}
		switch c {
		case ']':
			return steps, nil
		case ',':
			continue
		}
		s.back()
		at := span{from: s.at}
		s.start()
		if err := s.value(); err != nil {
			return nil, err
		}
		at.to = s.at
		step, err := ParseJSON(s.part.Bytes())
		s.stop()
		if err != nil {
			return nil, err
		}
		if err := s.each(step); err != nil {
			return nil, err
		}
		steps = append(steps, at)
	}
}

// copied reads a value and writes it.
func (s *indexer) copied(to *bytes.Buffer) error {
	s.start()
	defer s.stop()
	if err := s.value(); err != nil {
		return err
	}
	to.Write(s.part.Bytes())
	return nil
}

func (s *indexer) start() {
	s.part.Reset()
	s.keep = true
}

func (s *indexer) stop() { s.keep = false }

// value reads one value, with the space before it.
func (s *indexer) value() error {
	c, err := s.solid()
	if err != nil {
		return err
	}
	switch c {
	case '"':
		return s.text()
	case '{', '[':
		return s.nested()
	}
	for {
		c, err := s.next()
		if err != nil {
			return err
		}
		if bytes.IndexByte([]byte(",]} \t\r\n"), c) >= 0 {
			s.back()
			return nil
		}
	}
}

// nested reads the rest of an object or a list.
func (s *indexer) nested() error {
	for depth := 1; depth > 0; {
		c, err := s.next()
		if err != nil {
			return err
		}
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			if err := s.text(); err != nil {
				return err
			}
		}
	}
	return nil
}

// text reads the rest of a string.
func (s *indexer) text() error {
	for {
		c, err := s.next()
		if err != nil || c == '"' {
			return err
		}
		if c == '\\' {
			if _, err := s.next(); err != nil {
				return err
			}
		}
	}
}
