package oci

import "github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"

// Reexec is to be called first thing in main, with os.Args. When the program
// was executed as one of this package's helpers it does the helper's work and
// returns the exit code for the caller to exit with. A program that has gVisor too calls
// runsc.Reexec before.
func Reexec(args []string) (code int, handled bool) {
	return runtimes.Reexec(args, runtimes.Helpers{Remove: removeTree})
}
