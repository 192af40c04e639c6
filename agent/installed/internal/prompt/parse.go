package prompt

import (
	"regexp"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// node is a part of a template: text, an expression, or a loop over one.
type node struct {
	line   int
	text   string
	expr   *expression
	target string // the name that a loop gives each line; empty unless it is one
	body   []node
}

// expression is a name and what is done to its text, in order.
type expression struct {
	name  string
	calls []string // keys of the map of that name
}

// calls are what can be done to text, ".name" for methods and "|name" for filters.
var calls = map[string]func(string) value.Value{
	".strip":      func(s string) value.Value { return value.Str(value.Strip(s)) },
	"|trim":       func(s string) value.Value { return value.Str(value.Strip(s)) },
	".upper":      func(s string) value.Value { return value.Str(strings.ToUpper(s)) },
	"|upper":      func(s string) value.Value { return value.Str(strings.ToUpper(s)) },
	".lower":      func(s string) value.Value { return value.Str(strings.ToLower(s)) },
	"|lower":      func(s string) value.Value { return value.Str(strings.ToLower(s)) },
	splitsInLines: splitLines,
}

// splitsInLines is the one call that does not give text.
const splitsInLines = ".splitlines"

// known says what may be written, for the formats of errors.
const known = "a template may have {{ instruction }}, {%% for l in instruction.splitlines() %%}, {%% raw %%} and {# comments #}"

// parser reads a template.
type parser struct {
	in    scanner
	scope []string // the names that loops give, the innermost last
	used  bool     // the instruction has been named
}

// nodes reads what stands in a loop that began at a line, up to its end; 0 is for the
// template itself.
func (p *parser) nodes(loop int) ([]node, error) {
	var out []node
	for {
		t, err := p.in.next()
		if err != nil {
			return nil, err
		}
		switch t.kind {
		case end:
			if loop != 0 {
				return nil, invalidAt(loop, "this loop has no {%% endfor %%}")
			}
			return out, nil
		case text:
			out = append(out, node{line: t.line, text: t.body})
		case output:
			expr, isList, err := p.expression(t.line, t.body)
			if err != nil {
				return nil, err
			}
			if isList {
				return nil, invalidAt(t.line, "%s is a list of lines, which only a loop can take", shown(t.body))
			}
			out = append(out, node{line: t.line, expr: expr})
		case tag:
			if loop != 0 && strings.TrimSpace(t.body) == "endfor" {
				return out, nil
			}
			n, err := p.loop(t)
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
	}
}

var loopHead = regexp.MustCompile(`^\s*for\s+([A-Za-z_][A-Za-z0-9_]*)\s+in\s(.*)$`)

// loop reads a loop, of which t is the head.
func (p *parser) loop(t token) (node, error) {
	m := loopHead.FindStringSubmatch(strings.ReplaceAll(t.body, "\n", " "))
	if m == nil {
		head := shown(t.body)
		return node{}, invalidAt(t.line, "{%% %s %%} is not supported: "+known, head[1:len(head)-1])
	}
	if len(p.scope) == maxDepth {
		return node{}, invalidAt(t.line, "too many loops in each other, at most %d", maxDepth)
	}
	expr, isList, err := p.expression(t.line, m[2])
	if err != nil {
		return node{}, err
	}
	if !isList {
		return node{}, invalidAt(t.line, "a loop over the characters of a text is not supported, only one over its lines: %s.splitlines()", expr.name)
	}
	p.scope = append(p.scope, m[1])
	body, err := p.nodes(t.line)
	p.scope = p.scope[:len(p.scope)-1]
	return node{line: t.line, expr: expr, target: m[1], body: body}, err
}

var (
	chain = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*)((?:\s*\.\s*\w+\s*\(\s*\)|\s*\|\s*\w+(?:\s*\(\s*\))?)*)\s*$`)
	link  = regexp.MustCompile(`([.|])\s*(\w+)`)
)

// expression reads one; isList says that it gives lines, and not text.
func (p *parser) expression(line int, s string) (_ *expression, isList bool, err error) {
	m := chain.FindStringSubmatch(s)
	if m == nil {
		return nil, false, invalidAt(line, "the expression %s is not supported: "+known, shown(s))
	}
	e := &expression{name: m[1]}
	switch {
	case slices.Contains(p.scope, e.name):
	case e.name == variable:
		p.used = true
	default:
		return nil, false, invalidAt(line, "there is no variable %s; the one that there is, is %s", shown(e.name), variable)
	}
	for _, m := range link.FindAllStringSubmatch(m[2], -1) {
		call := m[1] + m[2]
		switch {
		case isList:
			return nil, false, invalidAt(line, "%s does something to a list of lines; only a loop can take it", shown(s))
		case calls[call] == nil:
			return nil, false, invalidAt(line, "%s is not supported; there are the methods strip, upper, lower and splitlines, and the filters trim, upper and lower", shown(call))
		}
		isList = call == splitsInLines
		e.calls = append(e.calls, call)
	}
	return e, isList, nil
}
