// Package dotenv reads files of environment variables the way python-dotenv
// does, which Harbor reads --env-file with: one NAME=value per line, quotes,
// comments, and references ${NAME} and ${NAME:-default}. A $ that begins no
// such reference stays, so that passwords survive.
package dotenv

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Variable is one line of a file.
type Variable struct{ Name, Value string }

// White space as Python's regular expressions know it, with line feeds and
// without.
const (
	anySpace  = `[\t-\r\x1c-\x20\x85\p{Z}]`
	lineSpace = `[\t\v\f\x1c-\x20\x85\p{Z}]`
)

// Patterns of the format. All that a reader takes match where it stands.
var (
	blank        = regexp.MustCompile(`^` + anySpace + `+`)
	space        = regexp.MustCompile(`^` + lineSpace + `*`)
	export       = regexp.MustCompile(`^export` + lineSpace + `+`)
	quotedName   = regexp.MustCompile(`^'([^']+)'`)
	plainName    = regexp.MustCompile(`^([^=#\t-\r\x1c-\x20\x85\p{Z}]+)`)
	single       = regexp.MustCompile(`^'((?:\\'|[^'])*)'`)
	double       = regexp.MustCompile(`^"((?:\\"|[^"])*)"`)
	plain        = regexp.MustCompile(`^[^\n]*`)
	comment      = regexp.MustCompile(`^#[^\n]*`)
	end          = regexp.MustCompile(`^` + lineSpace + `*(?:\n|$)`)
	plainComment = regexp.MustCompile(anySpace + `+#.*`)
	trailing     = regexp.MustCompile(anySpace + `+$`)
	singleEscape = regexp.MustCompile(`\\[\\']`)
	doubleEscape = regexp.MustCompile(`\\[\\'"abfnrtv]`)
	reference    = regexp.MustCompile(`\$\{([^}:]*)(?::-([^}]*))?\}`)
)

var (
	lineFeeds = strings.NewReplacer("\r\n", "\n", "\r", "\n")
	unescaped = map[string]string{
		`\\`: `\`, `\'`: `'`, `\"`: `"`,
		`\a`: "\a", `\b`: "\b", `\f`: "\f", `\n`: "\n", `\r`: "\r", `\t`: "\t", `\v`: "\v",
	}
)

// Parse reads a file. A reference means the variable of that name above it in
// the file, else what lookup finds, else its default, else nothing. A name
// without "=" sets nothing, also where it was set above. Lines that cannot be
// read are skipped and named in the warnings.
func Parse(text string, lookup func(string) (string, bool)) (vars []Variable, warnings []string) {
	known := map[string]string{}
	r := reader{rest: lineFeeds.Replace(text), line: 1}
	for r.skip(blank); r.rest != ""; r.skip(blank) {
		at := r.line
		name, value, assigned, ok := r.binding()
		if !ok {
			r.skip(plain)
			warnings = append(warnings, fmt.Sprintf("line %d cannot be read and is skipped", at))
			continue
		}
		if name == "" {
			continue
		}
		value = expand(value, known, lookup)
		known[name] = value
		vars = slices.DeleteFunc(vars, func(v Variable) bool { return v.Name == name })
		if assigned {
			vars = append(vars, Variable{name, value})
		}
	}
	return vars, warnings
}

// reader is what is left of a file.
type reader struct {
	rest string
	line int
}

// take removes the match of a pattern, and returns its first group, or all of
// it where there is none.
func (r *reader) take(re *regexp.Regexp) (string, bool) {
	m := re.FindStringSubmatch(r.rest)
	if m == nil {
		return "", false
	}
	r.rest = r.rest[len(m[0]):]
	r.line += strings.Count(m[0], "\n")
	return m[len(m)-1], true
}

func (r *reader) skip(re *regexp.Regexp) { _, _ = r.take(re) }

// binding reads one line; without an assignment it is a comment or a bare name.
func (r *reader) binding() (name, value string, assigned, ok bool) {
	r.skip(export)
	if !strings.HasPrefix(r.rest, "#") {
		if name, value, assigned, ok = r.assignment(); !ok {
			return "", "", false, false
		}
	}
	r.skip(space)
	r.skip(comment)
	_, ok = r.take(end)
	return name, value, assigned, ok
}

// assignment reads a name and, behind an equals sign, its value.
func (r *reader) assignment() (name, value string, assigned, ok bool) {
	of := plainName
	if strings.HasPrefix(r.rest, "'") {
		of = quotedName
	}
	if name, ok = r.take(of); !ok {
		return "", "", false, false
	}
	r.skip(space)
	if !strings.HasPrefix(r.rest, "=") {
		return name, "", false, true
	}
	r.rest = r.rest[1:]
	r.skip(space)
	value, ok = r.value()
	return name, value, true, ok
}

func (r *reader) value() (string, bool) {
	switch {
	case strings.HasPrefix(r.rest, "'"):
		v, ok := r.take(single)
		return unescape(singleEscape, v), ok
	case strings.HasPrefix(r.rest, `"`):
		v, ok := r.take(double)
		return unescape(doubleEscape, v), ok
	}
	v, _ := r.take(plain)
	if at := plainComment.FindStringIndex(v); at != nil {
		v = v[:at[0]]
	}
	return trailing.ReplaceAllString(v, ""), true
}

func unescape(re *regexp.Regexp, s string) string {
	return re.ReplaceAllStringFunc(s, func(m string) string { return unescaped[m] })
}

func expand(value string, known map[string]string, lookup func(string) (string, bool)) string {
	return reference.ReplaceAllStringFunc(value, func(ref string) string {
		m := reference.FindStringSubmatch(ref)
		if v, ok := known[m[1]]; ok {
			return v
		}
		if v, ok := lookup(m[1]); ok {
			return v
		}
		return m[2]
	})
}
