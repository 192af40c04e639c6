package value

import (
	"io"
	"iter"
)

// A Stream writes one object as [AppendPydantic] appends it, part by part: each
// item of its lists is written before the next is made, so that a document of many
// items takes the memory of one.
//
//	s := value.NewStream(w, 4)
//	s.Members(head)
//	s.List("trials", items)
//	err := s.Close()
type Stream struct {
	to     io.Writer
	layout writer
	// text is what has not been written yet; it is kept for its memory.
	text  []byte
	begun bool
	err   error
}

// streamPart is from how many bytes on a Stream writes what it has.
const streamPart = 32 << 10

// NewStream returns a stream to a writer, with an indentation as [AppendPydantic]
// takes it.
func NewStream(to io.Writer, indent int) *Stream {
	return &Stream{to: to, layout: pydanticWriter(indent)}
}

// Members adds the members of an object.
func (s *Stream) Members(o *Object) {
	for key, v := range o.All() {
		s.key(key)
		s.text = s.layout.value(s.text, v, 1)
		s.flush(streamPart)
	}
}

// List adds a member that is a list. It asks for no further item once the writer
// has failed.
func (s *Stream) List(key string, items iter.Seq[Value]) {
	s.key(key)
	s.text = append(s.text, '[')
	some := false
	for v := range items {
		if some {
			s.text = append(s.text, s.layout.item...)
		}
		some = true
		s.text = s.layout.value(s.layout.line(s.text, 2), v, 2)
		if s.flush(streamPart); s.err != nil {
			return
		}
	}
	if some {
		s.text = s.layout.line(s.text, 1)
	}
	s.text = append(s.text, ']')
}

// Close ends the object and returns the first error of the writer.
func (s *Stream) Close() error {
	if s.begun {
		s.text = append(s.layout.line(s.text, 0), '}')
	} else {
		s.text = append(s.text, "{}"...)
	}
	s.flush(1)
	return s.err
}

// key begins a member.
func (s *Stream) key(key string) {
	if s.begun {
		s.text = append(s.text, s.layout.item...)
	} else {
		s.text, s.begun = append(s.text, '{'), true
	}
	s.text = s.layout.text(s.layout.line(s.text, 1), key)
	s.text = append(s.text, s.layout.key...)
}

// flush writes what there is when it is at least so many bytes.
func (s *Stream) flush(least int) {
	if len(s.text) < least {
		return
	}
	if s.err == nil {
		_, s.err = s.to.Write(s.text)
	}
	s.text = s.text[:0]
}
