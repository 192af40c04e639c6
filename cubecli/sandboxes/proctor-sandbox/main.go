// Command proctor-sandbox is what programs that need shared libraries are
// executed again as: the supervisor inside sandboxes and the built-in OCI
// runtime. Package sandboxes builds it without the C library when they need
// it; there is nothing else to do with it.
package main

import (
	"fmt"
	"os"

	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/sandbox/oci"
)

func main() {
	if code, handled := oci.Main(os.Args, os.Stdin, os.Stdout, os.Stderr, version.Current().ID()); handled {
		os.Exit(code)
	}
	fmt.Fprintln(os.Stderr, "proctor-sandbox: programs that open sandboxes execute this; it has no commands")
	os.Exit(2)
}
