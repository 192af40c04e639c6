// Package toml reads TOML 1.0 documents as Python's tomllib does: tables and
// keys keep their order, integers have any size, and errors have the texts and
// positions of tomllib, which trial results record.
//
// Begin with [Decode]. Dates and times become schema.Temporal values.
package toml

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/proctor-run/proctor/value"
)

// ErrorType is the name of the exception that tomllib raises for documents
// that are not TOML.
const ErrorType = "TOMLDecodeError"

// Error says where and why text is not TOML.
type Error struct {
	Msg          string
	Line, Column int // from 1, in characters; both 0 at the end of the document
	// Begin is the line on which the statement that fails begins. One that does not end
	// may go on to the end of the document.
	Begin int
}

// Error renders the reason and the place in tomllib's words.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Msg + " (at end of document)"
	}
	return fmt.Sprintf("%s (at line %d, column %d)", e.Msg, e.Line, e.Column)
}

// PlainText says for people also on which line begins what does not end.
func (e *Error) PlainText() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s (at end of document): what does not end begins in line %d", e.Msg, e.Begin)
	}
	return e.Error()
}

// Place says where to look: the place of the error, or at the end of the document the
// line on which begins what does not end.
func (e *Error) Place() string {
	if e.Line == 0 {
		return fmt.Sprintf("line %d", e.Begin)
	}
	return fmt.Sprintf("line %d, column %d", e.Line, e.Column)
}

// ErrorType returns the name of the exception.
func (e *Error) ErrorType() string { return ErrorType }

// Decode reads a document. Lines must end in LF or CR LF. The error is an
// [*Error], or a *value.Error for what tomllib does not treat as a syntax
// error: an integer with too many digits, or nesting that is too deep.
func Decode(text string) (*value.Object, error) {
	p := newParser(text)
	if err := p.document(); err != nil {
		return nil, err
	}
	return p.root, nil
}

func newParser(text string) *parser {
	return &parser{src: strings.ReplaceAll(text, "\r\n", "\n"), root: &value.Object{}}
}

const (
	blanks     = " \t"
	whitespace = " \t\n"
)

// parser stands at pos, a byte offset into src.
type parser struct {
	src   string
	pos   int
	begin int // where the statement begins
	depth int
	root  *value.Object
	names namespace // what may still be added to which table
	// implied holds the tables that dotted keys below the current header have
	// made; they close with the next header.
	implied [][]string
	lines   *lineCounter // nil where nobody asks
}

func (p *parser) document() error {
	var header []string
	for {
		p.skip(blanks)
		if p.pos >= len(p.src) {
			return nil
		}
		p.begin = p.pos
		var err error
		switch c := p.src[p.pos]; {
		case c == '\n':
			p.pos++
			continue
		case isBareKey(c) || c == '"' || c == '\'':
			err = p.keyValue(header)
			p.skip(blanks)
		case c == '[':
			p.closeImplied()
			header, err = p.header()
			p.skip(blanks)
		case c != '#':
			err = p.fail("Invalid statement")
		}
		if err == nil {
			err = p.comment()
		}
		if err != nil {
			return err
		}
		if p.pos >= len(p.src) {
			return nil
		}
		if p.src[p.pos] != '\n' {
			return p.fail("Expected newline or end of document after a statement")
		}
		p.pos++
	}
}

// closeImplied makes the tables that dotted keys have made as final as if
// they had a header.
func (p *parser) closeImplied() {
	for _, key := range p.implied {
		p.names.set(key, declared, false)
	}
	p.implied = nil
}

func (p *parser) header() ([]string, error) {
	if strings.HasPrefix(p.src[p.pos:], "[[") {
		return p.arrayHeader()
	}
	p.pos++
	p.skip(blanks)
	key, err := p.key()
	if err != nil {
		return nil, err
	}
	if p.names.is(key, declared) || p.names.is(key, frozen) {
		return nil, p.fail("Cannot declare %s twice", reprKey(key))
	}
	p.names.set(key, declared, false)
	if _, ok := descend(p.root, key, true); !ok {
		return nil, p.fail("Cannot overwrite a value")
	}
	if !strings.HasPrefix(p.src[p.pos:], "]") {
		return nil, p.fail("Expected ']' at the end of a table declaration")
	}
	p.pos++
	p.note(key, true)
	return key, nil
}

func (p *parser) arrayHeader() ([]string, error) {
	p.pos += 2
	p.skip(blanks)
	key, err := p.key()
	if err != nil {
		return nil, err
	}
	if p.names.is(key, frozen) {
		return nil, p.fail("Cannot mutate immutable namespace %s", reprKey(key))
	}
	p.names.forget(key)
	p.names.set(key, declared, false)
	if !appendTable(p.root, key) {
		return nil, p.fail("Cannot overwrite a value")
	}
	if !strings.HasPrefix(p.src[p.pos:], "]]") {
		return nil, p.fail("Expected ']]' at the end of an array declaration")
	}
	p.pos += 2
	p.note(key, true)
	return key, nil
}

func (p *parser) keyValue(header []string) error {
	key, value, err := p.pair()
	if err != nil {
		return err
	}
	full := join(header, key)
	for i := 1; i < len(key); i++ {
		part := full[:len(header)+i]
		if p.names.is(part, declared) {
			return p.fail("Cannot redefine namespace %s", reprKey(part))
		}
		p.implied = append(p.implied, part)
	}
	parent, name := full[:len(full)-1], full[len(full)-1]
	if p.names.is(parent, frozen) {
		return p.fail("Cannot mutate immutable namespace %s", reprKey(parent))
	}
	table, ok := descend(p.root, parent, true)
	if !ok || table.Has(name) {
		return p.fail("Cannot overwrite a value")
	}
	if isContainer(value) {
		p.names.set(full, frozen, true)
	}
	table.Set(name, value)
	p.note(full, false)
	return nil
}

func (p *parser) pair() (key []string, value value.Value, err error) {
	if key, err = p.key(); err != nil {
		return nil, nil, err
	}
	if p.pos >= len(p.src) || p.src[p.pos] != '=' {
		return nil, nil, p.fail("Expected '=' after a key in a key/value pair")
	}
	p.pos++
	p.skip(blanks)
	value, err = p.value()
	return key, value, err
}

// key reads a dotted key and the blanks behind it.
func (p *parser) key() ([]string, error) {
	var key []string
	for {
		part, err := p.keyPart()
		if err != nil {
			return nil, err
		}
		key = append(key, part)
		p.skip(blanks)
		if p.pos >= len(p.src) || p.src[p.pos] != '.' {
			return key, nil
		}
		p.pos++
		p.skip(blanks)
	}
}

func (p *parser) keyPart() (string, error) {
	if p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case isBareKey(c):
			start := p.pos
			for p.pos < len(p.src) && isBareKey(p.src[p.pos]) {
				p.pos++
			}
			return p.src[start:p.pos], nil
		case c == '\'':
			return p.literal()
		case c == '"':
			p.pos++
			return p.basic(false)
		}
	}
	return "", p.fail("Invalid initial character for a key part")
}

func isBareKey(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func (p *parser) skip(set string) {
	for p.pos < len(p.src) && strings.IndexByte(set, p.src[p.pos]) >= 0 {
		p.pos++
	}
}

// comment skips a comment, if there is one, up to the end of its line.
func (p *parser) comment() error {
	if p.pos >= len(p.src) || p.src[p.pos] != '#' {
		return nil
	}
	p.pos++
	end := strings.IndexByte(p.src[p.pos:], '\n')
	if end < 0 {
		end = len(p.src) - p.pos
	}
	return p.over(p.pos+end, "")
}

// over moves to end unless a control character, other than tabs and those in
// allowed, lies before it.
func (p *parser) over(end int, allowed string) error {
	for ; p.pos < end; p.pos++ {
		if c := p.src[p.pos]; isControl(c) && strings.IndexByte(allowed, c) < 0 {
			return p.fail("Found invalid character %s", value.Repr(value.Str(c)))
		}
	}
	return nil
}

func isControl(c byte) bool { return (c < 0x20 && c != '\t') || c == 0x7f }

// fail makes an error at the current position.
func (p *parser) fail(format string, args ...any) error {
	e := &Error{Msg: fmt.Sprintf(format, args...), Begin: strings.Count(p.src[:p.begin], "\n") + 1}
	if p.pos >= len(p.src) {
		return e
	}
	before := p.src[:p.pos]
	e.Line = strings.Count(before, "\n") + 1
	e.Column = utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return e
}
