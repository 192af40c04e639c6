// Command proctor-guest is the supervisor inside a sandbox as a program of its
// own. Lying beside proctor it is used in proctor's place there, and starts
// faster because it is small.
package main

import (
	"os"

	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/sandbox/guest"
)

func main() {
	os.Exit(guest.Program(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, version.Current().ID()))
}
