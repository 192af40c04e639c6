package prompt

import (
	"regexp"
	"strings"

	"github.com/proctor-run/proctor/value"
)

type kind int

const (
	end kind = iota
	text
	output // {{ … }}
	tag    // {% … %}
)

// token is a part of a template; body is what stands between its marks.
type token struct {
	kind kind
	body string
	line int
}

// scanner cuts a template into tokens: comments are gone, raw blocks are text, and the
// white space that "-" takes away is gone.
type scanner struct {
	rest string
	line int  // of rest, counted from 1
	trim bool // the mark before rest takes away the white space behind it
}

var (
	opening = regexp.MustCompile(`\{[{%#]`)
	endRaw  = regexp.MustCompile(`\{%(-?)\s*endraw\s*(-?)%\}`)
)

func (s *scanner) next() (token, error) {
	for s.rest != "" {
		at := len(s.rest)
		if found := opening.FindStringIndex(s.rest); found != nil {
			at = found[0]
		}
		if at > 0 {
			if t := s.text(at); t.body != "" {
				return t, nil
			}
			continue
		}
		t, comment, err := s.mark()
		if err != nil || !comment {
			return t, err
		}
	}
	return token{kind: end, line: s.line}, nil
}

// take cuts n bytes off the template.
func (s *scanner) take(n int) string {
	out := s.rest[:n]
	s.line += strings.Count(out, "\n")
	s.rest = s.rest[n:]
	return out
}

// text takes the text before what begins at a byte.
func (s *scanner) text(before int) token {
	t := token{kind: text, line: s.line, body: s.take(before)}
	t.body = trimmed(t.body, s.trim, len(s.rest) > 2 && s.rest[2] == '-')
	s.trim = false
	return t
}

func trimmed(s string, left, right bool) string {
	if left {
		s = strings.TrimLeftFunc(s, value.IsSpace)
	}
	if right {
		s = strings.TrimRightFunc(s, value.IsSpace)
	}
	return s
}

// mark takes what stands between a mark and its counterpart. What it returns for a
// comment is nothing.
func (s *scanner) mark() (t token, comment bool, err error) {
	t.line = s.line
	open := s.rest[:2]
	closing := map[string]string{"{{": "}}", "{%": "%}", "{#": "#}"}[open]
	n := strings.Index(s.rest[2:], closing)
	if n < 0 {
		return t, false, invalidAt(s.line, "%s is not closed by %s", open, closing)
	}
	body := s.take(2 + n + 2)[2 : 2+n]
	body = strings.TrimPrefix(body, "-")
	body, s.trim = strings.CutSuffix(body, "-")
	switch {
	case open == "{#":
		return t, true, nil
	case open == "{{":
		t.kind, t.body = output, body
	case strings.TrimSpace(body) != "raw":
		t.kind, t.body = tag, body
	default:
		t.body, err = s.raw(t.line)
		t.kind = text
	}
	return t, false, err
}

// raw takes the rest of a raw block that began at a line.
func (s *scanner) raw(line int) (string, error) {
	at := endRaw.FindStringSubmatchIndex(s.rest)
	if at == nil {
		return "", invalidAt(line, "{%% raw %%} has no {%% endraw %%}")
	}
	body := trimmed(s.rest[:at[0]], s.trim, at[3] > at[2])
	s.trim = at[5] > at[4]
	s.take(at[1])
	return body, nil
}
