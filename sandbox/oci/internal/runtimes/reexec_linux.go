package runtimes

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/internal/native"
)

// Names under which the program executes itself.
const (
	runscArg0  = "runsc" // gVisor's own children have names that begin with it, or
	runscExe   = "/proc/self/exe"
	launchArg0 = "proctor-launch"
	removeArg0 = "proctor-remove"
	// waitForMap as the last argument of a helper says that it has to wait
	// until its user namespace is mapped.
	waitForMap = "--wait-for-map"
)

// Helpers are what a program can be executed again for.
type Helpers struct {
	// Remove removes the directory of a sandbox; nil in a program that does not.
	Remove func(dir string) error
	// GVisor is gVisor's main, which exits by itself; nil in a program without it.
	GVisor func()
	// Build is the build of the program that has GVisor.
	Build string
}

// buildVar is the environment variable that tells gVisor's program of which build the
// program is that executes it.
const buildVar = "PROCTOR_BUILD"

// errNoGVisor is the error of a program that was taken for gVisor's.
var errNoGVisor = errors.New("this program has no gVisor")

// Reexec is to be called first thing in main, with os.Args. When the program
// was executed as one of this package's helpers it does the helper's work and
// returns the exit code for the caller to exit with.
func Reexec(args []string, h Helpers) (code int, handled bool) {
	if len(args) == 0 {
		return 0, false
	}
	name := filepath.Base(args[0])
	var err error
	switch {
	case args[0] == runscExe || isRunsc(name):
		err = h.becomeGVisor()
	case name == launchArg0:
		err = h.runLaunch(args[1:])
	case name == removeArg0 && h.Remove != nil:
		err = runRemove(args[1:], h.Remove)
	default:
		return 0, false
	}
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "%s: %v\n", name, err) //nolint:forbidigo // this process is a helper, not the program
		return 1, true
	}
	return 0, true
}

// IsHelper reports whether a program of that base name is a helper of this package, or
// gVisor.
func IsHelper(name string) bool { return name == launchArg0 || name == removeArg0 || isRunsc(name) }

// Refused recognises what a helper printed that may not make namespaces or mounts.
func Refused(err error) bool {
	text := err.Error()
	return (strings.Contains(text, launchArg0+": ") || strings.Contains(text, "making the sandbox: ")) && strings.Contains(text, unix.EPERM.Error())
}

// becomeGVisor returns only with an error.
func (h Helpers) becomeGVisor() error {
	if h.GVisor == nil {
		return errNoGVisor
	}
	want, ok := os.LookupEnv(buildVar) //nolint:forbidigo // it comes from the program that executes this one
	if ok && want != h.Build {
		return fmt.Errorf("gVisor's program is of build %q and was executed by build %q: both must be of the same", h.Build, want)
	}
	h.GVisor()
	return nil
}

func isRunsc(name string) bool {
	return name == runscArg0 || strings.HasPrefix(name, runscArg0+"-")
}

// runLaunch is the helper in a user and mount namespace of its own. It becomes
// the runtime.
func (h Helpers) runLaunch(args []string) error {
	// The signal at the parent's death is asked for by one thread, and kept
	// by an execution on that thread.
	runtime.LockOSThread()
	if err := becomeRoot(args); err != nil {
		return err
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var l launch
	if err := json.Unmarshal(data, &l); err != nil {
		return fmt.Errorf("reading %q: %w", args[0], err)
	}
	if l.Guest != "" {
		return l.becomeGuest(callerFD(args))
	}
	if err := l.mountAll(); err != nil {
		return err
	}
	if err := l.sendDevice(callerFD(args)); err != nil {
		return err
	}
	if l.Builtin {
		os.Args = l.Argv //nolint:forbidigo // this process is the runtime from here on
		return h.becomeGVisor()
	}
	return fmt.Errorf("executing %q: %w", l.Argv[0], syscall.Exec(l.Argv[0], l.Argv, os.Environ())) //nolint:forbidigo // this process is the runtime from here on
}

// becomeGuest makes the device of a network, and executes the guest, which makes
// the sandbox. What that reads lies behind the socket to the caller.
func (l *launch) becomeGuest(socket int) error {
	if err := l.sendDevice(socket); err != nil {
		return err
	}
	if err := unix.Dup3(socket+1, native.SetupFD, 0); err != nil {
		return fmt.Errorf("passing on how the sandbox is set up: %w", err)
	}
	return fmt.Errorf("executing %q: %w", l.Guest, syscall.Exec(l.Guest, []string{GuestArg0, native.Mode}, runtimeEnv()))
}

// runRemove removes directories that hold files of users other than the caller.
func runRemove(args []string, remove func(dir string) error) error {
	if err := becomeRoot(args); err != nil {
		return err
	}
	return remove(args[0])
}

// firstExtra is the file descriptor of the first of exec.Cmd.ExtraFiles.
const firstExtra = 3

func waits(args []string) bool { return args[len(args)-1] == waitForMap }

// callerFD is the socket to the caller, the one of exec.Cmd.ExtraFiles that
// follows what waits.
func callerFD(args []string) int {
	if waits(args) {
		return firstExtra + 1
	}
	return firstExtra
}

// becomeRoot waits until the process is root of its user namespace.
func becomeRoot(args []string) error {
	if len(args) == 0 {
		return errors.New("an argument is missing")
	}
	if !waits(args) {
		return nil
	}
	const mapped = firstExtra
	pipe := os.NewFile(mapped, "mapped")
	if n, err := pipe.Read(make([]byte, 1)); n != 1 {
		return fmt.Errorf("waiting for the user namespace: %w", err)
	}
	if err := pipe.Close(); err != nil {
		return fmt.Errorf("closing the pipe to the parent: %w", err)
	}
	// Change of credentials undoes it.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("asking for a signal at the parent's death: %w", err)
	}
	// The caller's other groups would open its files to the sandbox.
	if err := unix.Setgroups(nil); err != nil {
		return fmt.Errorf("dropping the caller's groups: %w", err)
	}
	return nil
}
