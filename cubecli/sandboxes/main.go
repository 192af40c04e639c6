package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/proctor-run/proctor/cubecli"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci"
)

// Main is cubecli.Main with sandboxes: the program of an author whose cubes'
// tasks run in containers. It is all of main.
func Main(cubes ...cubecli.Cube) {
	Reexec()
	p := cubecli.NewProgram(cubes...)
	Attach(p, nil)
	os.Exit(p.Run(context.Background()))
}

// Attach lets a program open sandboxes of some backends. Its main begins with
// [Reexec].
func Attach(p *cubecli.Program, backends Registry) {
	p.Environments = backends.Names()
	p.Sandboxes = func(ctx context.Context, o cubecli.SandboxOptions) (sandbox.Backend, func() error, error) {
		return Open(ctx, o.Environment, Options{
			Backends: backends, Runtime: o.Runtime, Mask: o.Mask,
			Hardened: o.Hardened, AllowRemoteEngine: o.AllowRemoteEngine,
			Notice: func(line string) { noticeOn(p.Stderr, p.Name, line) },
		})
	}
}

// TestMain runs the tests of a package that opens sandboxes; m is its
// *testing.M:
//
//	func TestMain(m *testing.M) { sandboxes.TestMain(m) }
func TestMain(m interface{ Run() int }) {
	Reexec()
	os.Exit(m.Run())
}

// hooked is set once Reexec was called: only then may this program be executed
// again.
var hooked atomic.Bool

// Reexec has to be called first thing in main or TestMain by programs that
// call neither Main nor TestMain of this package. A program that opens
// sandboxes is executed again, to make them and inside them; then Reexec does that
// work and exits. Otherwise it returns at once.
func Reexec() {
	if code, handled := oci.Main(os.Args, os.Stdin, os.Stdout, os.Stderr, version.Current().ID()); handled {
		os.Exit(code)
	}
	hooked.Store(true)
}

// errNoHook refuses to open sandboxes in a program that would begin its own
// work when it is executed again.
var errNoHook = errors.New("sandboxes cannot be opened: this program is executed again inside them, and it has not called sandboxes.Reexec; " +
	"in tests, call sandboxes.TestMain from TestMain; in a program, begin main with sandboxes.Main or sandboxes.Reexec")

// noticeOn prints a line that users should read.
func noticeOn(w io.Writer, program, line string) { _, _ = fmt.Fprintf(w, "%s: %s\n", program, line) }

// orProcess fills in what was left out from this process.
func (o Options) orProcess() Options {
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Notice == nil {
		o.Notice = func(line string) { noticeOn(os.Stderr, "sandboxes", line) }
	}
	return o
}
