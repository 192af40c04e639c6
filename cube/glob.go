package cube

import (
	"reflect"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/value"
)

// globMatcher returns a matcher of shell wildcards over a whole text: case
// counts, * also matches slashes, an unclosed [ is itself, and nothing escapes.
func globMatcher(pattern string) func(string) bool {
	tokens := globTokens([]rune(pattern))
	return func(s string) bool { return globMatch(tokens, []rune(s)) }
}

// globToken matches one character, or any number of them when star is set.
type globToken struct {
	star bool
	any  bool
	set  *globSet
	char rune
}

type globSet struct {
	negated bool
	ranges  [][2]rune
}

func (t globToken) matches(r rune) bool {
	switch {
	case t.any:
		return true
	case t.set != nil:
		in := slices.ContainsFunc(t.set.ranges, func(x [2]rune) bool { return x[0] <= r && r <= x[1] })
		return in != t.set.negated
	}
	return t.char == r
}

func globTokens(p []rune) []globToken {
	var out []globToken
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '*':
			if len(out) == 0 || !out[len(out)-1].star {
				out = append(out, globToken{star: true})
			}
		case '?':
			out = append(out, globToken{any: true})
		case '[':
			set, next := globBrackets(p, i)
			if set == nil {
				out = append(out, globToken{char: '['})
				continue
			}
			out = append(out, globToken{set: set})
			i = next
		default:
			out = append(out, globToken{char: p[i]})
		}
	}
	return out
}

// globBrackets reads the set that starts at p[i]; end is the index of its
// closing bracket.
func globBrackets(p []rune, i int) (set *globSet, end int) {
	j := i + 1
	if j < len(p) && p[j] == '!' {
		j++
	}
	if j < len(p) && p[j] == ']' {
		j++
	}
	for j < len(p) && p[j] != ']' {
		j++
	}
	if j >= len(p) {
		return nil, 0
	}
	body := p[i+1 : j]
	set = &globSet{}
	if body[0] == '!' {
		set.negated = true
		body = body[1:]
	}
	for k := 0; k < len(body); k++ {
		if k+2 < len(body) && body[k+1] == '-' {
			set.ranges = append(set.ranges, [2]rune{body[k], body[k+2]})
			k += 2
			continue
		}
		set.ranges = append(set.ranges, [2]rune{body[k], body[k]})
	}
	return set, j
}

// globMatch backs up to the last star only, so that it takes at most the
// product of both lengths.
func globMatch(tokens []globToken, s []rune) bool {
	ti, si, star, mark := 0, 0, -1, 0
	for si < len(s) {
		switch {
		case ti < len(tokens) && tokens[ti].star:
			star, mark = ti, si
			ti++
		case ti < len(tokens) && tokens[ti].matches(s[si]):
			ti++
			si++
		case star >= 0:
			mark++
			ti, si = star+1, mark
		default:
			return false
		}
	}
	for ti < len(tokens) && tokens[ti].star {
		ti++
	}
	return ti == len(tokens)
}

// fieldText returns Python's str() of a declared field.
func (r *Registry) fieldText(m Metadata, key string) (string, bool, error) {
	shape, err := typed.StructOf(reflect.TypeOf(m).Elem())
	if err != nil || !r.types.Has(m) || !shape.Has(key) {
		return "", false, nil
	}
	dump, err := Dump(m)
	if err != nil {
		return "", false, err
	}
	v, _ := dump.Get(key)
	if o, ok := v.(*Object); ok && r.isModel(o) {
		return r.modelFields(o, " "), true, nil
	}
	if _, isText := v.(Str); isText {
		return value.Text(v), true, nil
	}
	return r.modelRepr(v), true, nil
}

// isModel tells a written typed object from untyped data.
func (r *Registry) isModel(o *Object) bool {
	_, ok := r.className(o)
	return ok
}

// className returns the class of a written typed object.
func (r *Registry) className(o *Object) (string, bool) {
	path, ok := o.Get(typed.TypeKey)
	if !ok {
		return "", false
	}
	return r.types.ClassName(value.Text(path))
}

// modelRepr is Python's repr, in which typed objects are NAME(field=value, …).
func (r *Registry) modelRepr(v Value) string {
	switch v := v.(type) {
	case List:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = r.modelRepr(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *Object:
		if name, ok := r.className(v); ok {
			return name + "(" + r.modelFields(v, ", ") + ")"
		}
		var parts []string
		for k, item := range v.All() {
			parts = append(parts, quote(k)+": "+r.modelRepr(item))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return value.Repr(v)
}

func (r *Registry) modelFields(o *Object, separator string) string {
	var parts []string
	for k, v := range o.All() {
		if k != typed.TypeKey {
			parts = append(parts, k+"="+r.modelRepr(v))
		}
	}
	return strings.Join(parts, separator)
}
