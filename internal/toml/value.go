package toml

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// maxDepth is how deep arrays and inline tables may nest; beyond it Python's
// own recursion limit is near.
const maxDepth = 400

const timePattern = `([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]{1,6})[0-9]*)?`

var (
	timeForm     = regexp.MustCompile(`^` + timePattern)
	dateTimeForm = regexp.MustCompile(`^([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])` +
		`(?:[Tt ]` + timePattern + `(?:([Zz])|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))?)?`)
	basedForm  = regexp.MustCompile(`^0(?:x[0-9A-Fa-f](?:_?[0-9A-Fa-f])*|b[01](?:_?[01])*|o[0-7](?:_?[0-7])*)`)
	numberForm = regexp.MustCompile(`^[+-]?(?:0|[1-9](?:_?[0-9])*)((?:\.[0-9](?:_?[0-9])*)?(?:[eE][+-]?[0-9](?:_?[0-9])*)?)`)
)

func (p *parser) value() (value.Value, error) {
	rest := p.src[p.pos:]
	switch {
	case strings.HasPrefix(rest, `"""`):
		return p.multiline('"')
	case strings.HasPrefix(rest, `"`):
		p.pos++
		s, err := p.basic(false)
		return value.Str(s), err
	case strings.HasPrefix(rest, `'''`):
		return p.multiline('\'')
	case strings.HasPrefix(rest, `'`):
		s, err := p.literal()
		return value.Str(s), err
	case strings.HasPrefix(rest, "true"):
		p.pos += len("true")
		return value.Bool(true), nil
	case strings.HasPrefix(rest, "false"):
		p.pos += len("false")
		return value.Bool(false), nil
	case strings.HasPrefix(rest, "["):
		return p.nested(p.array)
	case strings.HasPrefix(rest, "{"):
		return p.nested(p.inlineTable)
	}
	// Numbers and dates are short; cutting here keeps the patterns from
	// looking at the rest of the document for each value.
	if end := strings.IndexAny(rest, "\n,]}#"); end >= 0 {
		rest = rest[:end]
	}
	if m := dateTimeForm.FindStringSubmatch(rest); m != nil {
		return p.dateTime(m)
	}
	if m := timeForm.FindStringSubmatch(rest); m != nil {
		t, err := schema.Time(clockOf(m[1:5]))
		if err != nil {
			return nil, p.fail("Invalid date or datetime")
		}
		p.pos += len(m[0])
		return t, nil
	}
	return p.number(rest)
}

func (p *parser) nested(read func() (value.Value, error)) (value.Value, error) {
	if p.depth >= maxDepth {
		return nil, &value.Error{Exception: value.RecursionError, Message: "maximum recursion depth exceeded"}
	}
	p.depth++
	defer func() { p.depth-- }()
	return read()
}

func (p *parser) number(rest string) (value.Value, error) {
	if m := basedForm.FindString(rest); m != "" {
		p.pos += len(m)
		n, _ := new(big.Int).SetString(strings.ReplaceAll(m, "_", ""), 0)
		return value.NewBigInt(n), nil
	}
	if m := numberForm.FindStringSubmatch(rest); m != nil {
		p.pos += len(m[0])
		if m[1] != "" {
			f, err := value.ParseFloat(m[0])
			return f, err
		}
		n, err := value.ParseInt(m[0])
		return n, err
	}
	unsigned := strings.TrimLeft(rest[:min(len(rest), 1)], "+-") + rest[min(len(rest), 1):]
	sign := 1
	if strings.HasPrefix(rest, "-") {
		sign = -1
	}
	signLen := len(rest) - len(unsigned)
	switch {
	case strings.HasPrefix(unsigned, "inf"):
		p.pos += signLen + 3
		return value.Float(math.Inf(sign)), nil
	case strings.HasPrefix(unsigned, "nan"):
		p.pos += signLen + 3
		return value.Float(math.NaN()), nil
	}
	return nil, p.fail("Invalid value")
}

// dateTime makes the value of a match of dateTimeForm, and moves behind it.
func (p *parser) dateTime(m []string) (value.Value, error) {
	year, month, day := atoi(m[1]), atoi(m[2]), atoi(m[3])
	var t schema.Temporal
	var err error
	if m[4] == "" {
		t, err = schema.Date(year, month, day)
	} else {
		t, err = schema.DateTime(year, month, day, clockOf(m[4:8]), schema.Offset(m[8], m[9], m[10], m[11]))
	}
	if err != nil {
		return nil, p.fail("Invalid date or datetime")
	}
	p.pos += len(m[0])
	return t, nil
}

// clockOf reads hour, minute, second and fraction.
func clockOf(m []string) schema.Clock {
	c := schema.Clock{Hour: atoi(m[0]), Minute: atoi(m[1]), Second: atoi(m[2])}
	if m[3] != "" {
		c.Microsecond = atoi((m[3] + "00000")[:6])
	}
	return c
}

// atoi reads digits that a pattern has already matched; nothing is 0.
func atoi(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

func (p *parser) array() (value.Value, error) {
	p.pos++
	out := value.List{}
	for {
		if err := p.arraySpace(); err != nil {
			return nil, err
		}
		if strings.HasPrefix(p.src[p.pos:], "]") {
			p.pos++
			return out, nil
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		if err := p.arraySpace(); err != nil {
			return nil, err
		}
		switch {
		case strings.HasPrefix(p.src[p.pos:], ","):
			p.pos++
		case !strings.HasPrefix(p.src[p.pos:], "]"):
			return nil, p.fail("Unclosed array")
		}
	}
}

// arraySpace skips blanks, line ends and comments.
func (p *parser) arraySpace() error {
	for {
		before := p.pos
		p.skip(whitespace)
		if err := p.comment(); err != nil {
			return err
		}
		if p.pos == before {
			return nil
		}
	}
}

func (p *parser) inlineTable() (value.Value, error) {
	p.pos++
	out := &value.Object{}
	var names namespace
	p.skip(blanks)
	if strings.HasPrefix(p.src[p.pos:], "}") {
		p.pos++
		return out, nil
	}
	for {
		key, item, err := p.pair()
		if err != nil {
			return nil, err
		}
		if names.is(key, frozen) {
			return nil, p.fail("Cannot mutate immutable namespace %s", reprKey(key))
		}
		last := len(key) - 1
		table, ok := descend(out, key[:last], false)
		if !ok {
			return nil, p.fail("Cannot overwrite a value")
		}
		if table.Has(key[last]) {
			return nil, p.fail("Duplicate inline table key %s", value.Repr(value.Str(key[last])))
		}
		table.Set(key[last], item)
		p.skip(blanks)
		if strings.HasPrefix(p.src[p.pos:], "}") {
			p.pos++
			return out, nil
		}
		if !strings.HasPrefix(p.src[p.pos:], ",") {
			return nil, p.fail("Unclosed inline table")
		}
		if isContainer(item) {
			names.set(key, frozen, true)
		}
		p.pos++
		p.skip(blanks)
	}
}
