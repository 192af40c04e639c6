// Package native makes a process that was started in new namespaces the first
// one of a sandbox: it mounts the root file system and what belongs in it,
// enters it, and gives up what commands in containers may not do. It is the
// inner half of the runtime "native" of package oci; the outer half starts the
// guest program with [Mode] as its argument and writes a [Setup] to its
// descriptor [SetupFD].
//
// What it does follows the OCI runtime specification 1.2, sections
// "Configuration" and "Linux Container Configuration", and the defaults of
// container engines.
package native

// Scores say whom the kernel kills first when memory is short
// (proc_pid_oom_score_adj(5)): the guest has one, its commands get the other.
// Both 0 leave it as it is.
type Scores struct {
	Guest, Commands int
	keep            uint64 // capabilities that the guest needs for it
}

// Mode is the argument that makes the guest program call Init before it serves.
const Mode = "init"

// OpenFiles is how many files a process may have open, where the caller may let it: what
// container engines give theirs, and what a kernel allows at most by default.
const OpenFiles = 1 << 20

// SetupFD is the descriptor from which the Setup is read. The process waits
// there, so that the outer half can put it into control groups, map its users and
// connect its network before anything happens.
const SetupFD = 3
