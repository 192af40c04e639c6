package docker

import (
	"regexp"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// recipe is what has to be known of a Dockerfile before it is built.
type recipe struct {
	buildKit bool     // it uses what the classic builder does not have
	bases    []string // images of its FROM and COPY --from
}

// modern are flags that only BuildKit understands, and here-documents.
var modern = regexp.MustCompile(`(?im)^\s*(RUN\s+(--[a-z-]+(=\S*)?\s+)*--(mount|network|security|device)\b|(COPY|ADD)\s+(--[a-z-]+(=\S*)?\s+)*--(chmod|link|parents|exclude|checksum|keep-git-dir|unpack)\b|(RUN|COPY|ADD)\b.*<<-?["']?[a-z_])|^#\s*syntax\s*=`)

// readRecipe never fails: what it cannot read is the builder's to refuse. given
// are build arguments; they replace defaults.
func readRecipe(text string, given map[string]*string) recipe {
	r := recipe{buildKit: modern.MatchString(text)}
	parsed, err := parser.Parse(strings.NewReader(text))
	if err != nil {
		return r
	}
	stages, metaArgs, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return r
	}
	args := make(map[string]string)
	for _, m := range metaArgs {
		for _, kv := range m.Args {
			if v := given[kv.Key]; v != nil {
				args[kv.Key] = *v
			} else if kv.Value != nil {
				args[kv.Key] = expand(*kv.Value, args)
			}
		}
	}
	var names []string // of stages so far
	add := func(ref string) {
		ref = expand(ref, args)
		number := strings.Trim(ref, "0123456789") == ""
		if ref != "scratch" && !number && !slices.Contains(names, strings.ToLower(ref)) && !slices.Contains(r.bases, ref) {
			r.bases = append(r.bases, ref)
		}
	}
	for _, s := range stages {
		add(s.BaseName)
		names = append(names, strings.ToLower(s.Name))
		for _, cmd := range s.Commands {
			if c, ok := cmd.(*instructions.CopyCommand); ok && c.From != "" {
				add(c.From)
			}
		}
	}
	return r
}

// expand replaces variables; what cannot be expanded stays as it is.
func expand(word string, args map[string]string) string {
	out, _, err := shell.NewLex('\\').ProcessWord(word, env(args))
	if err != nil {
		return word
	}
	return out
}

// env is a map as the Dockerfile's expansion wants it.
type env map[string]string

func (e env) Get(key string) (string, bool) {
	v, ok := e[key]
	return v, ok
}

func (e env) Keys() []string {
	keys := make([]string, 0, len(e))
	for k := range e {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
