// Command proctor-runsc is gVisor, the kernel of sandboxes with --runtime gvisor, as a
// program of its own. It lies beside proctor, which executes it; there is nothing else to
// do with it.
package main

import (
	"fmt"
	"os"

	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/sandbox/oci/runsc"
)

func main() {
	if code, handled := runsc.Reexec(os.Args, version.Current().ID()); handled {
		os.Exit(code)
	}
	fmt.Fprintln(os.Stderr, "proctor-runsc: proctor executes this; it has no commands")
	os.Exit(2)
}
