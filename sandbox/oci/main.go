package oci

import (
	"io"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/sandbox/guest"
)

// Main is everything that a program is executed again as: the supervisor inside
// sandboxes, when its name is GuestArg0, and the helpers of Reexec. A program
// that is its own guest calls it first thing in main, with os.Args and the
// build that Options.Build has too, and exits with the code when it was
// handled.
func Main(args []string, stdin, stdout *os.File, stderr io.Writer, build string) (code int, handled bool) {
	if len(args) > 0 && filepath.Base(args[0]) == GuestArg0 {
		return guest.Program(args[1:], stdin, stdout, stderr, build), true
	}
	return Reexec(args)
}
