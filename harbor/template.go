package harbor

import (
	"regexp"
	"unicode/utf8"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/schema"
)

// templateForm is matched against whole values only; the name may hold
// anything but a brace and a colon, the default anything but a line end.
var templateForm = regexp.MustCompile(`^\$\{([^}:]+)(:-(.*))?\}\z`)

// Lookup finds a variable of the host's environment.
type Lookup = func(name string) (value string, ok bool)

// Template is a value of the form ${NAME} or ${NAME:-default} (section 3.10).
type Template struct {
	Name       string
	Default    string
	HasDefault bool
}

// ParseTemplate reads a value. ok is false for a literal, which is everything
// that is not a template as a whole.
func ParseTemplate(value string) (t Template, ok bool) {
	m := templateForm.FindStringSubmatch(value)
	if m == nil {
		return Template{}, false
	}
	return Template{Name: m[1], Default: m[3], HasDefault: m[2] != ""}, true
}

// ResolveTemplate returns the value that a template stands for; a literal
// stands for itself. A variable that is set wins over the default even when it
// is empty, and the default is not resolved again.
func ResolveTemplate(value string, host Lookup) (string, error) {
	t, ok := ParseTemplate(value)
	if !ok {
		return value, nil
	}
	if v, set := host(t.Name); set {
		return v, nil
	}
	if t.HasDefault {
		return t.Default, nil
	}
	return "", exception.Errorf(exception.ValueError, "Environment variable '%s' not found in host environment", t.Name)
}

// ResolveEnv resolves the values of a table, in order. The first variable that
// is missing is the error.
func ResolveEnv(env Env, host Lookup) (Env, error) {
	var out Env
	for name, value := range env.All() {
		resolved, err := ResolveTemplate(value, host)
		if err != nil {
			return Env{}, err
		}
		out.Set(name, resolved)
	}
	return out, nil
}

// MissingVariables lists the variables that a table's templates need and the
// host lacks, in order and without repetition.
func MissingVariables(env Env, host Lookup) []string {
	var missing []string
	seen := map[string]bool{}
	for _, value := range env.All() {
		t, ok := ParseTemplate(value)
		if !ok || t.HasDefault || seen[t.Name] {
			continue
		}
		if _, set := host(t.Name); !set {
			seen[t.Name] = true
			missing = append(missing, t.Name)
		}
	}
	return missing
}

// Longest credential that is masked as a whole, and what is shown of a longer
// one, in characters.
const (
	maskedLength  = 8
	shownPrefix   = 4
	shownSuffix   = 3
	redactionMask = "****"
)

// RedactEnv returns an environment variable's value as files may show it
// (Harbor job format, section 1.8): templates and values under harmless names
// as they are, a credential that equals the host's variable of the same name
// as a template for it, other credentials masked. Redacting twice changes
// nothing. A nil host is an empty environment.
func RedactEnv(name, value string, host Lookup) string {
	if _, ok := ParseTemplate(value); ok || !schema.Sensitive(name) {
		return value
	}
	if host != nil {
		if v, set := host(name); set && v == value {
			return "${" + name + "}"
		}
	}
	if utf8.RuneCountInString(value) <= maskedLength {
		return redactionMask
	}
	runes := []rune(value)
	return string(runes[:shownPrefix]) + redactionMask + string(runes[len(runes)-shownSuffix:])
}

// Assignments writes variables as KEY=VALUE.
func Assignments(env Env) []string {
	list := make([]string, 0, env.Len())
	for k, v := range env.All() {
		list = append(list, k+"="+v)
	}
	return list
}
