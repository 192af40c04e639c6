package build

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// Bounds against Dockerfiles that grow by expansion.
const (
	maxVars     = 10_000
	maxExpanded = 16 << 20 // bytes of one word or inline file
)

// defaultPath is PATH for instructions where the image sets none, as in the
// sandboxes.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// vars are variables in the order in which they were first set.
type vars struct {
	list    []string // KEY=VALUE
	at      map[string]int
	longest int // value, in bytes
}

func newVars(env []string) *vars {
	v := &vars{at: map[string]int{}}
	for _, kv := range env {
		key, value, _ := strings.Cut(kv, "=")
		v.set(key, value)
	}
	return v
}

func (v *vars) set(key, value string) {
	v.longest = max(v.longest, len(value))
	kv := key + "=" + value
	if i, ok := v.at[key]; ok {
		v.list[i] = kv
		return
	}
	v.at[key] = len(v.list)
	v.list = append(v.list, kv)
}

// add is set for names and values that a Dockerfile gives.
func (v *vars) add(key, value string) error {
	if key == "" || strings.ContainsAny(key, "=\x00") || strings.Contains(value, "\x00") {
		return fmt.Errorf("variable %q: malformed name or value", key)
	}
	if len(v.list) >= maxVars {
		return fmt.Errorf("more than %d variables", maxVars)
	}
	v.set(key, value)
	return nil
}

// Get and Keys are what expansion asks for.
func (v *vars) Get(key string) (string, bool) {
	i, ok := v.at[key]
	if !ok {
		return "", false
	}
	return v.list[i][len(key)+1:], true
}

// Keys lists the names, in order.
func (v *vars) Keys() []string {
	keys := make([]string, 0, len(v.list))
	for _, kv := range v.list {
		key, _, _ := strings.Cut(kv, "=")
		keys = append(keys, key)
	}
	return keys
}

// env is a copy in the form that commands take.
func (v *vars) env() []string { return slices.Clone(v.list) }

func (v *vars) clone() *vars { return newVars(v.list) }

var errExpansion = errors.New("its variables expand to too much")

// expand replaces variables in a word (Dockerfile reference, "Environment
// replacement").
func expand(lex *shell.Lex, word string, v *vars) (string, error) {
	if n := strings.Count(word, "$"); n > 0 && len(word)+n*v.longest > maxExpanded {
		return "", errExpansion
	}
	out, _, err := lex.ProcessWord(word, v)
	if err != nil {
		return "", fmt.Errorf("replacing variables: %w", err)
	}
	return out, nil
}
