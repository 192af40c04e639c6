// Package runtimes starts sandboxes: with gVisor, which is built in, as the guest
// that makes its sandbox itself, or with runc or crun. They differ behind Runtime
// alone.
package runtimes

import "github.com/proctor-run/proctor/sandbox"

// Names of the runtimes.
const (
	GVisor = "gvisor"
	Native = "native"
	Runc   = "runc"
	Crun   = "crun"
)

// GuestArg0 is the base name of os.Args[0] of the guest supervisor.
const GuestArg0 = sandbox.HelperName
