package value

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// MaxDepth is how deep arrays and objects may nest in JSON; one more is a
// RecursionError. It is the limit measured on CPython 3.13, expected of late
// 3.12 releases. (Reward semantics, section 4.4.)
const MaxDepth = 9998

// Decode reads one JSON value from the bytes of a file: [ReadText], then
// [DecodeText].
func Decode(data []byte) (Value, error) {
	text, err := ReadText(data)
	if err != nil {
		return nil, err
	}
	return DecodeText(text)
}

// DecodeText reads one JSON value with the grammar of CPython's json module
// (reward semantics, section 4):
//
//   - NaN, Infinity and -Infinity are numbers; -0 is the int 0.
//   - A number without fraction and exponent is an int of any size, up to
//     MaxIntDigits digits, beyond which it is a ValueError. Other numbers are
//     the nearest double, which may be infinite.
//   - Of a name that comes twice, the last value counts, at the first position.
//   - Two escapes that form a surrogate pair join; other surrogates stay alone.
//
// Malformed text is a JSONDecodeError in CPython's words with line and column,
// deep nesting a RecursionError. The result does not share memory with text.
func DecodeText(text string) (Value, error) {
	d := decoder{text: text}
	if strings.HasPrefix(text, "\ufeff") {
		return nil, d.fail("Unexpected UTF-8 BOM (decode using utf-8-sig)", 0)
	}
	d.skipSpace()
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	d.skipSpace()
	if d.pos != len(d.text) {
		return nil, d.fail("Extra data", d.pos)
	}
	return v, nil
}

// decoder is the state of one DecodeText. Members of unfinished containers lie
// on shared stacks, so that each container is allocated once, at its final size.
type decoder struct {
	text   string
	pos    int
	depth  int
	values []Value
	names  []string
	known  [64]string // names seen lately, shared between objects
	buf    []byte     // the string with escapes that is being read
}

// fail returns a JSONDecodeError at the byte offset.
func (d *decoder) fail(what string, at int) *Error {
	before := d.text[:at]
	offset := characters(before)
	line := strings.Count(before, "\n") + 1
	column := characters(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return &Error{
		Exception: JSONDecodeError,
		Message:   fmt.Sprintf("%s: line %d column %d (char %d)", what, line, column, offset),
		Line:      line, Column: column, Offset: offset,
	}
}

// characters counts the code points of WTF-8 text.
func characters(s string) int {
	n := 0
	for i := range len(s) {
		if s[i]&0xC0 != 0x80 {
			n++
		}
	}
	return n
}

func (d *decoder) skipSpace() {
	for d.pos < len(d.text) {
		switch d.text[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

// next returns the byte at the position, or 0 at the end of the text.
func (d *decoder) next() byte {
	if d.pos < len(d.text) {
		return d.text[d.pos]
	}
	return 0
}

func (d *decoder) value() (Value, error) {
	switch c := d.next(); c {
	case '"':
		s, err := d.str()
		return Str(s), err
	case '{':
		return d.object()
	case '[':
		return d.list()
	case 'n':
		return d.constant("null", Null{})
	case 't':
		return d.constant("true", Bool(true))
	case 'f':
		return d.constant("false", Bool(false))
	case 'N':
		return d.constant("NaN", Float(math.NaN()))
	case 'I':
		return d.constant("Infinity", Float(math.Inf(1)))
	default:
		if c == '-' || isDigit(c) {
			return d.number()
		}
		return nil, d.fail("Expecting value", d.pos)
	}
}

func (d *decoder) constant(word string, v Value) (Value, error) {
	if !strings.HasPrefix(d.text[d.pos:], word) {
		return nil, d.fail("Expecting value", d.pos)
	}
	d.pos += len(word)
	return v, nil
}

func (d *decoder) enter(what string) error {
	if d.depth++; d.depth > MaxDepth {
		return raise(RecursionError, "maximum recursion depth exceeded while decoding a JSON %s from a unicode string", what)
	}
	d.pos++
	d.skipSpace()
	return nil
}

func (d *decoder) list() (Value, error) {
	if err := d.enter("array"); err != nil {
		return nil, err
	}
	start := len(d.values)
	for first := true; !first || d.next() != ']'; first = false {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		d.values = push(d.values, v)
		more, err := d.separator(']')
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	d.pos++
	d.depth--
	var list List
	if n := len(d.values) - start; n > 0 {
		list = make(List, n)
		copy(list, d.values[start:])
		clear(d.values[start:])
		d.values = d.values[:start]
	}
	return list, nil
}

// separator moves to the next element and reports true, or stops at the closing
// byte.
func (d *decoder) separator(closing byte) (more bool, err error) {
	d.skipSpace()
	switch {
	case d.next() == closing:
		return false, nil
	case d.next() != ',':
		return false, d.fail("Expecting ',' delimiter", d.pos)
	}
	d.pos++
	d.skipSpace()
	return true, nil
}

func (d *decoder) object() (Value, error) {
	if err := d.enter("object"); err != nil {
		return nil, err
	}
	start, firstName := len(d.values), len(d.names)
	var index map[string]int
	for first := true; !first || d.next() != '}'; first = false {
		name, v, err := d.member()
		if err != nil {
			return nil, err
		}
		names := d.names[firstName:]
		if index == nil && len(names) >= indexFrom {
			index = indexOf(names)
		}
		if at := find(names, index, name); at >= 0 {
			d.values[start+at] = v
		} else {
			if index != nil {
				index[name] = len(names)
			}
			d.names = push(d.names, name)
			d.values = push(d.values, v)
		}
		more, err := d.separator('}')
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	d.pos++
	d.depth--
	return d.finish(start, firstName, index), nil
}

// finish moves the members from the stacks into an object.
func (d *decoder) finish(start, firstName int, index map[string]int) *Object {
	names, values := d.names[firstName:], d.values[start:]
	o := &Object{}
	if len(names) > 0 {
		o.members = make([]member, len(names))
		for i := range names {
			o.members[i] = member{names[i], values[i]}
		}
		clear(names)
		clear(values)
	}
	if o.index = index; index == nil && len(names) >= indexFrom {
		o.reindex()
	}
	d.names, d.values = d.names[:firstName], d.values[:start]
	return o
}

func indexOf(names []string) map[string]int {
	index := make(map[string]int, 2*len(names))
	for i, name := range names {
		index[name] = i
	}
	return index
}

func find(names []string, index map[string]int, name string) int {
	if index != nil {
		if i, ok := index[name]; ok {
			return i
		}
		return -1
	}
	for i := range names {
		if names[i] == name {
			return i
		}
	}
	return -1
}

// push appends and doubles the room when it is used up, which bounds what a long
// array costs on the way.
func push[T any](stack []T, v T) []T {
	if len(stack) == cap(stack) {
		grown := make([]T, len(stack), max(16, 2*len(stack)))
		copy(grown, stack)
		stack = grown
	}
	return append(stack, v)
}

func (d *decoder) member() (string, Value, error) {
	if d.next() != '"' {
		return "", nil, d.fail("Expecting property name enclosed in double quotes", d.pos)
	}
	name, err := d.name()
	if err != nil {
		return "", nil, err
	}
	d.skipSpace()
	if d.next() != ':' {
		return "", nil, d.fail("Expecting ':' delimiter", d.pos)
	}
	d.pos++
	d.skipSpace()
	v, err := d.value()
	return name, v, err
}

// number reads the longest prefix that is a number; what follows it is the
// caller's business.
func (d *decoder) number() (Value, error) {
	start := d.pos
	if strings.HasPrefix(d.text[start:], "-Infinity") {
		d.pos += len("-Infinity")
		return Float(math.Inf(-1)), nil
	}
	end := start
	if d.text[end] == '-' {
		end++
	}
	digits := end
	switch {
	case end < len(d.text) && d.text[end] == '0':
		end++
	case end < len(d.text) && isDigit(d.text[end]):
		end = skipDigits(d.text, end)
	default:
		return nil, d.fail("Expecting value", start)
	}
	whole := end
	if end+1 < len(d.text) && d.text[end] == '.' && isDigit(d.text[end+1]) {
		end = skipDigits(d.text, end+1)
	}
	end = skipExponent(d.text, end)
	d.pos = end
	if end > whole {
		return Float(toFloat(d.text[start:end])), nil
	}
	if n := whole - digits; n > MaxIntDigits {
		return nil, tooManyDigits(n)
	}
	return decimal(d.text[start:end]), nil
}

func tooManyDigits(n int) *Error {
	return raise(ValueError, "Exceeds the limit (%d digits) for integer string conversion: value has %d digits; "+
		"use sys.set_int_max_str_digits() to increase the limit", MaxIntDigits, n)
}

// smallInts are ints that JSON is full of, boxed once.
var smallInts = func() (table [256]Value) {
	for i := range table {
		table[i] = NewInt(int64(i))
	}
	return table
}()

// decimal returns the int that an optional minus and ASCII digits spell.
func decimal(s string) Value {
	if len(s) <= 18 {
		n, _ := strconv.ParseInt(s, 10, 64)
		if n >= 0 && n < int64(len(smallInts)) {
			return smallInts[n]
		}
		return NewInt(n)
	}
	n, _ := new(big.Int).SetString(s, 10)
	return normal(n)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func skipDigits(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

// skipExponent returns the end of the exponent at i, or i if there is none.
func skipExponent(s string, i int) int {
	if i >= len(s) || s[i] != 'e' && s[i] != 'E' {
		return i
	}
	j := i + 1
	if j < len(s) && (s[j] == '+' || s[j] == '-') {
		j++
	}
	if j >= len(s) || !isDigit(s[j]) {
		return i
	}
	return skipDigits(s, j)
}
