package jobdir

import (
	"log/slog"
	"strings"

	"github.com/proctor-run/proctor/schema"
)

// Env is an ordered set of environment variables as a configuration gives it.
// Values may be templates like "${NAME:-default}" and may be secret: printing
// or logging an Env shows its names only, and files get redacted values.
type Env struct {
	schema.Map[string]
}

// EnvOf returns an Env of alternating names and values. It panics when a value
// is missing; it is meant for literals.
func EnvOf(pairs ...string) Env {
	if len(pairs)%2 != 0 {
		panic("trial.EnvOf: a name without value")
	}
	var e Env
	for i := 0; i < len(pairs); i += 2 {
		e.Set(pairs[i], pairs[i+1])
	}
	return e
}

// String lists the names, without values.
func (e Env) String() string {
	names := make([]string, 0, e.Len())
	for name := range e.All() {
		names = append(names, name)
	}
	return "env(" + strings.Join(names, " ") + ")"
}

// GoString is [Env.String].
func (e Env) GoString() string { return e.String() }

// LogValue implements [slog.LogValuer].
func (e Env) LogValue() slog.Value { return slog.StringValue(e.String()) }
