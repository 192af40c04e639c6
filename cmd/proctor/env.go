package main

import (
	"io"
	"os"
	"strings"
	"time"
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
