package guest

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress/tunnel"
	"github.com/proctor-run/proctor/sandbox/internal/entrypoint"
	"github.com/proctor-run/proctor/sandbox/internal/native"
	"github.com/proctor-run/proctor/sandbox/internal/ownkernel"
)

// RelayMode is the argument that makes the guest program the relay through
// which programs in a sandbox reach servers of this program, see package tunnel.
// A second one is the port that it prefers to that of the egress proxy.
const RelayMode = "relay"

// CopiedMode is the argument that makes the guest program the supervisor where
// its file can be changed by what it supervises: it first copies itself into
// sealed memory and continues from there, see memfd_create(2).
const CopiedMode = "copied"

// programName is what the program is started as in sandboxes.
const programName = sandbox.HelperName

// Main is the supervisor. It serves the client at the other ends of stdin and
// stdout until stdin ends, then kills everything and returns the exit code.
// What goes wrong before the greeting is written to stderr.
//
// As process 1 of a PID namespace it is responsible for all of it. As any
// other process it is responsible for its descendants: it becomes their
// reaper, and touches nothing else. There it ends what it sees, but who forks
// fast enough is not seen, so that every call that ends processes fails: it
// cannot be proven that nothing is left.
func Main(stdin, stdout *os.File, stderr io.Writer, build string) int {
	scores, err := native.Spare()
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "proctor guest:", err)
		return 1
	}
	return supervise(stdin, stdout, stderr, build, bounds{scores: scores})
}

// Program is the guest program: the relay, or what only waits, when args, without
// the program's name, say so, and the supervisor otherwise, see Main, which first
// makes the sandbox when args say that, see package native, or knows what a sandbox
// with a kernel of its own needs, see package ownkernel. It returns the exit code.
func Program(args []string, stdin, stdout *os.File, stderr io.Writer, build string) int {
	switch {
	case len(args) == 0:
		return Main(stdin, stdout, stderr, build)
	case len(args) == 1 && args[0] == CopiedMode:
		_, _ = fmt.Fprintln(stderr, "proctor guest:", execSealed())
		return 1
	case len(args) == 1 && args[0] == entrypoint.WaitMode:
		return wait(stderr)
	case len(args) == 1 && args[0] == native.Mode:
		scores, err := native.Init()
		if err != nil {
			_, _ = fmt.Fprintln(stderr, "proctor guest: making the sandbox:", err)
			return 1
		}
		return supervise(stdin, stdout, stderr, build, bounds{scores: scores})
	case len(args) == 2 && args[0] == ownkernel.Mode:
		return onOwnKernel(stdin, stdout, stderr, build, args[1])
	}
	port, ok := relayPort(args)
	if !ok {
		_, _ = fmt.Fprintf(stderr, "proctor guest: unknown arguments %q\n", args)
		return 2
	}
	hide()
	if err := tunnel.Relay(stdin, stdout, port); err != nil {
		_, _ = fmt.Fprintln(stderr, "proctor guest: relaying:", err)
		return 1
	}
	return 0
}

// relayPort is the port of a relay; it reports whether args ask for one.
func relayPort(args []string) (port uint16, ok bool) {
	if args[0] != RelayMode || len(args) > 2 {
		return 0, false
	}
	if len(args) == 1 {
		return tunnel.ProxyPort, true
	}
	n, err := strconv.ParseUint(args[1], 10, 16)
	return uint16(n), err == nil && n > 0
}

// bounds are what the supervisor sees to.
type bounds struct {
	scores native.Scores // whom the kernel kills when memory is short
	memory int64         // how many bytes commands may have, 0 where another sees to that
	pids   *processLimit // nil where another sees to that
}
