package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/internal/secret"
)

// Env is everything the program takes from the outside world.
type Env struct {
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string // KEY=VALUE
	Now            func() time.Time
	// Signals delivers interrupts: the first asks to finish, the second to
	// stop at once.
	Signals <-chan os.Signal

	// farewell is said when a signal ends the program at once.
	farewell *jobcli.Farewell

	// agents are those of the command, besides what can be chosen anywhere.
	agents agent.Registry

	// What is printed in no error, besides what looks like a secret in Environ and Args.
	secretNames []string
	secrets     []redact.Secret
}

// source is where secrets come from besides a configuration.
func (e *Env) source(names []string) secret.Source {
	return secret.Source{Lookup: e.Lookup, Environ: e.Environ, Names: names}
}

// hide keeps the secrets of a configuration, and what has these names, out of errors.
func (e *Env) hide(names []string, list []redact.Secret) { e.secretNames, e.secrets = names, list }

// hidden are all that is printed in no error.
func (e *Env) hidden() *redact.Set {
	own := e.source(e.secretNames)
	return redact.New(slices.Concat(own.OfProcess(), e.secrets, own.OfTexts(e.Args)))
}

// Lookup finds an environment variable; of several with one name the last
// counts.
func (e *Env) Lookup(name string) (string, bool) {
	for i := len(e.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(e.Environ[i], "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// Getenv is Lookup with an empty string for what is not set.
func (e *Env) Getenv(name string) string {
	v, _ := e.Lookup(name)
	return v
}
