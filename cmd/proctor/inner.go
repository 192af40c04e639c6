package main

import (
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/sandbox/guest"
	"github.com/proctor-run/proctor/sandbox/oci"
)

// innerMain is the program's other lives: it is executed again as the
// supervisor inside sandboxes and as the built-in OCI runtime.
func innerMain(args []string) (code int, done bool) {
	if filepath.Base(args[0]) == oci.GuestArg0 {
		return guest.Program(args[1:], os.Stdin, os.Stdout, os.Stderr, version.Current().ID()), true
	}
	return oci.Reexec(args)
}
