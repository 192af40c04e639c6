package toml

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/proctor-run/proctor/value"
)

// literal reads '…', standing at the first quote.
func (p *parser) literal() (string, error) {
	p.pos++
	return p.raw("'", "")
}

// raw reads up to the closing quotes and moves behind them. Control characters
// in allowed may occur.
func (p *parser) raw(quotes, allowed string) (string, error) {
	start := p.pos
	n := strings.Index(p.src[start:], quotes)
	if n < 0 {
		p.pos = len(p.src)
		return "", p.fail("Expected %s", value.Repr(value.Str(quotes)))
	}
	if err := p.over(start+n, allowed); err != nil {
		return "", err
	}
	p.pos += len(quotes)
	return p.src[start : start+n], nil
}

// multiline reads a string in triple quotes, which up to two more quotes may
// follow as part of the string.
func (p *parser) multiline(quote byte) (value.Value, error) {
	p.pos += 3
	if strings.HasPrefix(p.src[p.pos:], "\n") {
		p.pos++
	}
	var text string
	var err error
	if quote == '\'' {
		text, err = p.raw("'''", "\n")
	} else {
		text, err = p.basic(true)
	}
	if err != nil {
		return nil, err
	}
	for range 2 {
		if p.pos >= len(p.src) || p.src[p.pos] != quote {
			break
		}
		p.pos++
		text += string(quote)
	}
	return value.Str(text), nil
}

// basic reads a string with escapes, standing behind its opening quotes.
func (p *parser) basic(multiline bool) (string, error) {
	var b strings.Builder
	start := p.pos
	for {
		if p.pos >= len(p.src) {
			return "", p.fail("Unterminated string")
		}
		switch c := p.src[p.pos]; {
		case c == '"':
			if !multiline || strings.HasPrefix(p.src[p.pos:], `"""`) {
				b.WriteString(p.src[start:p.pos])
				p.pos++
				if multiline {
					p.pos += 2
				}
				return b.String(), nil
			}
		case c == '\\':
			b.WriteString(p.src[start:p.pos])
			escaped, err := p.escape(multiline)
			if err != nil {
				return "", err
			}
			b.WriteString(escaped)
			start = p.pos
			continue
		case isControl(c) && (!multiline || c != '\n'):
			return "", p.fail("Illegal character %s", value.Repr(value.Str(c)))
		}
		p.pos++
	}
}

// escape reads one escape sequence, standing at its backslash.
func (p *parser) escape(multiline bool) (string, error) {
	p.pos++
	c := byte(0)
	if p.pos < len(p.src) {
		c = p.src[p.pos]
		_, size := utf8.DecodeRuneInString(p.src[p.pos:])
		p.pos += size
	}
	if multiline && strings.IndexByte(whitespace, c) >= 0 {
		return "", p.lineContinuation(c)
	}
	switch c {
	case 'b':
		return "\b", nil
	case 't':
		return "\t", nil
	case 'n':
		return "\n", nil
	case 'f':
		return "\f", nil
	case 'r':
		return "\r", nil
	case '"', '\\':
		return string(c), nil
	case 'u':
		return p.hexEscape(4)
	case 'U':
		return p.hexEscape(8)
	}
	return "", p.fail(`Unescaped '\' in a string`)
}

// lineContinuation skips the blanks and line ends behind a backslash that
// stands last on its line; c is the character already read.
func (p *parser) lineContinuation(c byte) error {
	if c != '\n' {
		p.skip(blanks)
		if p.pos >= len(p.src) {
			return nil
		}
		if p.src[p.pos] != '\n' {
			return p.fail(`Unescaped '\' in a string`)
		}
		p.pos++
	}
	p.skip(whitespace)
	return nil
}

func (p *parser) hexEscape(digits int) (string, error) {
	rest := p.src[p.pos:]
	n := 0
	for n < digits && n < len(rest) && strings.IndexByte("0123456789abcdefABCDEF", rest[n]) >= 0 {
		n++
	}
	if n < digits {
		return "", p.fail("Invalid hex value")
	}
	p.pos += digits
	code, err := strconv.ParseUint(rest[:digits], 16, 32)
	if err != nil || code > utf8.MaxRune || !utf8.ValidRune(rune(code)) {
		return "", p.fail("Escaped character is not a Unicode scalar value")
	}
	return string(rune(code)), nil
}
