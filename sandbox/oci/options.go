package oci

import (
	"errors"
	"log/slog"
	"time"

	"github.com/proctor-run/proctor/sandbox/egress"
	"github.com/proctor-run/proctor/sandbox/oci/image"
	"github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"
)

// Names of the runtimes. Any other value of Options.Runtime is the path of a
// program with runc's command line.
const (
	RuntimeGVisor = runtimes.GVisor // "gvisor"
	RuntimeNative = runtimes.Native // "native": the namespaces of the host's kernel, without a runtime's program
	RuntimeRunc   = runtimes.Runc   // "runc"
	RuntimeCrun   = runtimes.Crun   // "crun"
)

// GuestArg0 is the base name of os.Args[0] of the guest supervisor inside a
// sandbox. A program that is its own guest knows by it that it has to call
// guest.Main.
const GuestArg0 = runtimes.GuestArg0 // "proctor-guest"

// ErrShow is the error of paths in Options.Show that must not be shown.
var ErrShow = errors.New("setting show")

// Options of a backend.
type Options struct {
	// OwnRoot selects sandbox.BackendHost, on files of this machine; otherwise it is sandbox.BackendSandbox.
	OwnRoot bool
	// StateDir holds one directory per sandbox. It is created when missing,
	// readable by its owner only. It should be short and on a disk: its file
	// system holds what commands write.
	StateDir string
	// Executable is the absolute path of the running program (os.Executable).
	// It must call Reexec.
	Executable string
	// GVisor is the absolute path of a program that calls runsc.Reexec, such as
	// proctor-runsc; empty means Executable, which does so then. It must need no shared
	// libraries. It is used with RuntimeGVisor.
	GVisor string
	// Guest is the absolute path of the program that is PID 1 in sandboxes,
	// started as GuestArg0. Empty means Executable. It must need no shared
	// libraries that images may lack.
	Guest string
	// Build is the version that the guest must have, see guest.Options.
	Build string
	// Runtime is RuntimeGVisor, RuntimeNative, RuntimeRunc, RuntimeCrun or a path; empty
	// means RuntimeGVisor.
	Runtime string
	// PIDs is how many processes and threads a sandbox may have whose
	// Resources.PIDs is 0; 0 means sandbox.DefaultPIDs, less means no limit.
	PIDs int64
	// Hardened makes every sandbox as if its Spec asked for it.
	Hardened bool
	// ShareHost lets public sandboxes share this machine's network, its loopback
	// services and abstract sockets included. Those whose network will be switched
	// do not, and hardened ones are refused.
	ShareHost bool
	// Mask lists further absolute host paths that backend host must not show:
	// the jobs directory, the tasks with their solutions.
	Mask []string
	// Show lists absolute host paths that backend host shows beside the system's own
	// files, such as a tool in "/opt". One that is masked, or that holds keys or
	// sockets of this machine, is refused.
	Show []string
	// Images is where backend "sandbox" takes images from.
	Images *image.Store
	// Egress is how the egress proxy of sandboxes reaches the world; the zero
	// value is this machine's resolver and network.
	Egress egress.Upstream
	// Now is the clock of the egress proxy's log; nil means time.Now.
	Now func() time.Time
	// Log receives what went wrong without being an error of a call; nil
	// discards.
	Log *slog.Logger
}

// RuntimeStatus says whether a runtime can be used on this machine.
type RuntimeStatus struct {
	Name      string // RuntimeGVisor, RuntimeNative, RuntimeRunc or RuntimeCrun
	Path      string // of the program; empty when it is not installed, or this one
	Available bool
	Reason    string // why not, empty when available
	Fix       string // what to do about it
}
