// Package prompt puts an instruction into a template that a user wrote, as Harbor does
// for its installed agents (Harbor agent format, section 3.1).
//
// Harbor's templates are Jinja2. Of that language there is here
//
//	{{ instruction }}                           the instruction
//	{{ instruction|trim }}                      the filters trim, upper and lower, one behind another
//	{{ instruction.strip() }}                   the methods strip, upper, lower and splitlines
//	{% for l in instruction.splitlines() %}…{% endfor %}   once for every line
//	{% raw %}…{% endraw %}                      text that is left as it is
//	{# … #}                                     a comment
//
// with any blanks inside the marks, and "-" beside a mark ({{- … -}}), which takes away
// the white space on that side. Everything else is refused with an error that names the
// line. One line end at the end of a template is dropped, as Jinja2 does it.
package prompt

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// Bounds of what a template may be and do.
const (
	MaxTemplate = 1 << 20 // bytes of a template
	MaxPrompt   = 8 << 20 // bytes of what it makes
	// maxWork bounds the bytes that are handled on the way: loops in loops would
	// otherwise take hours.
	maxWork = 16 << 20
	// maxDepth bounds loops in loops.
	maxDepth = 8
)

// variable is the one that templates have.
const variable = "instruction"

// Render returns a template with the instruction in it. Both are text in UTF-8. The error
// of a template that has no place for the instruction, or has something that is not
// known here, is a ValueError; so is that of one that makes too much.
func Render(template, instruction string) (string, error) {
	if len(template) > MaxTemplate {
		return "", invalidf("the prompt template is too large: %d bytes, at most %d", len(template), MaxTemplate)
	}
	template = strings.ReplaceAll(strings.ReplaceAll(template, "\r\n", "\n"), "\r", "\n")
	p := parser{in: scanner{rest: strings.TrimSuffix(template, "\n"), line: 1}}
	body, err := p.nodes(0)
	if err != nil {
		return "", err
	}
	if !p.used {
		return "", invalidf("Prompt template must include an 'instruction' variable: write {{ instruction }} where the instruction goes")
	}
	r := renderer{names: []binding{{variable, value.Str(instruction)}}}
	if err := r.render(body); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

func invalidf(format string, args ...any) error {
	return exception.Errorf(exception.ValueError, format, args...)
}

func invalidAt(line int, format string, args ...any) error {
	return invalidf("line %d of the prompt template: "+format, append([]any{line}, args...)...)
}

// shown is a part of a template in an error.
func shown(s string) string { return value.ShortRepr(value.Repr(value.Str(strings.TrimSpace(s)))) }

// binding is a name and what it stands for.
type binding struct {
	name string
	is   value.Value // Str or List of Str
}

// renderer carries out what a parser has read.
type renderer struct {
	names []binding // the innermost last
	out   strings.Builder
	work  int
}

func (r *renderer) render(body []node) error {
	for _, n := range body {
		if err := r.spend(n.line, len(n.text)+1); err != nil {
			return err
		}
		if n.expr == nil {
			if err := r.write(n.line, n.text); err != nil {
				return err
			}
			continue
		}
		v, err := r.evaluate(n)
		switch {
		case err != nil:
		case n.target != "":
			err = r.loop(n, v)
		default:
			err = r.write(n.line, value.Text(v))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) loop(n node, over value.Value) error {
	r.names = append(r.names, binding{name: n.target})
	lines, _ := over.(value.List)
	for _, line := range lines {
		r.names[len(r.names)-1].is = line
		if err := r.spend(n.line, 1); err != nil {
			return err
		}
		if err := r.render(n.body); err != nil {
			return err
		}
	}
	r.names = r.names[:len(r.names)-1]
	return nil
}

func (r *renderer) write(line int, s string) error {
	if r.out.Len()+len(s) > MaxPrompt {
		return invalidAt(line, "what the template makes is too large: more than %d bytes", MaxPrompt)
	}
	r.out.WriteString(s)
	return nil
}

func (r *renderer) spend(line, n int) error {
	if r.work += n; r.work > maxWork {
		return invalidAt(line, "the template does too much: more than %d bytes of text are handled", maxWork)
	}
	return nil
}

// evaluate carries out an expression: each call but the last one gives text, of which the
// parser has made sure.
func (r *renderer) evaluate(n node) (value.Value, error) {
	v := r.lookup(n.expr.name)
	for _, call := range n.expr.calls {
		text, _ := v.(value.Str)
		if err := r.spend(n.line, len(text)+16); err != nil {
			return nil, err
		}
		v = calls[call](string(text))
	}
	return v, nil
}

// lookup finds a name; the parser has seen to it that there is one.
func (r *renderer) lookup(name string) value.Value {
	for _, b := range slices.Backward(r.names) {
		if b.name == name {
			return b.is
		}
	}
	return nil
}

// splitLines is Python's str.splitlines.
func splitLines(s string) value.Value {
	var out value.List
	for s != "" {
		end := strings.IndexFunc(s, endsLine)
		if end < 0 {
			return append(out, value.Str(s))
		}
		out = append(out, value.Str(s[:end]))
		_, width := utf8.DecodeRuneInString(s[end:])
		if strings.HasPrefix(s[end:], "\r\n") {
			width = 2
		}
		s = s[end+width:]
	}
	return out
}

func endsLine(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}
