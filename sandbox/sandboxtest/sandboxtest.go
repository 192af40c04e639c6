// Package sandboxtest is the conformance suite of the sandbox contract.
//
// A backend's own test calls [Run] with a way to make the backend and a Spec
// that it can create:
//
//	func TestContract(t *testing.T) {
//		sandboxtest.Run(t, sandboxtest.Config{
//			New:  func(t testing.TB) sandbox.Backend { return mybackend.New() },
//			Spec: sandbox.Spec{Image: sandbox.Image{Ref: "debian:12"}},
//		})
//	}
//
// Each subtest holds one obligation and is named after it, so that a failure
// tells which sentence of the contract is broken. What is asked follows from
// the backend's Capabilities and from the [Config]: a capability that is
// claimed and not held fails, one that is not claimed is skipped with a reason.
//
// The image must have bash, GNU coreutils, grep and setsid.
//
// What can only be measured of a whole process, as its memory, is measured in
// one of its own: the suite starts the test program again, with the environment,
// directory and flags of its own that this one has, to run that one subtest. So
// what calls Run has to reach it again under the same name. Tests that call Run
// may be parallel.
package sandboxtest

import (
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// Config says what is tested and what can be asked of it.
type Config struct {
	// New returns the backend under test. It is called once per Run; the
	// backend must serve several sandboxes at the same time.
	New func(t testing.TB) sandbox.Backend

	// Spec is the base of every sandbox of the suite. Its Name is a prefix;
	// mounts, environment and network are added by the obligations.
	Spec sandbox.Spec

	// Scratch is an absolute directory inside the sandbox that the suite may
	// create and fill. Empty means "/sandboxtest".
	Scratch string

	// User is a user of the image other than root. The zero value means
	// Debian's daemon.
	User User

	// Simulated says that the backend runs no processes. It must understand
	// the Script constants of this package and no others; what needs real
	// processes is skipped.
	Simulated bool

	// OneUser says that commands cannot be run as somebody else, and files
	// cannot be given away: an unprivileged backend with one mapped user.
	OneUser bool

	// World is what the backend's egress proxy reaches, in the place of the
	// real one: the backend is made with its Upstream. Without it nothing is
	// asked about allow lists.
	World *World

	// Outside says that public sandboxes reach World too, and nothing else: the
	// backend gives them a network of their own.
	Outside bool

	// SharedRoot says that all sandboxes of the backend see one file system,
	// as a supervisor without isolation does.
	SharedRoot bool
}

// User of the image, as in its /etc/passwd and /etc/group.
type User struct {
	Name, Group string
	UID, GID    int
}

// Scripts that a simulated backend must understand as Command.Shell.
const (
	// ScriptExit3 ends with code 3 and no output.
	ScriptExit3 = "exit 3"
	// ScriptBoth writes "out\n" to standard output, then "err\n" to standard error.
	ScriptBoth = "echo out; echo err >&2"
	// ScriptCat copies standard input to standard output.
	ScriptCat = "cat"
	// ScriptHang says "ready\n" and then does not end by itself.
	ScriptHang = "echo ready; exec sleep 86400"
	// ScriptMuch writes MuchBytes bytes of "y\n" lines to standard output.
	ScriptMuch = "yes | head -c 67108864"
)

// MuchBytes is the length of what ScriptMuch writes: 64 MiB.
const MuchBytes = 64 << 20

// obligation is one sentence of the contract, and what it takes to ask for it.
type obligation struct {
	name  string
	needs needs
	run   func(t *testing.T, s *suite)
}

// needs is a set of conditions under which an obligation can be asked.
type needs uint

const (
	processes   needs = 1 << iota // real processes
	otherUser                     // more than one user
	privateRoot                   // a file system of its own
	hostRoot                      // Capabilities.OwnRoot
	mounted                       // Capabilities.Mounted
	noNetwork                     // Capabilities.NoNetwork
	allowlist                     // Capabilities.Allowlist, and a World
	switching                     // Capabilities.SwitchNetwork, and a World
	outside                       // a World that public sandboxes reach
	guarded                       // Capabilities.GuardedMounts
	hardened                      // Capabilities.Hardened
	snapshots                     // sandboxes are Snapshotters
)

// Run holds the backend to the contract. Groups of obligations run side by side,
// as many as -parallel allows, each with a few sandboxes at a time; what was
// created is destroyed.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	if cfg.Scratch == "" {
		cfg.Scratch = "/sandboxtest"
	}
	if cfg.User == (User{}) {
		cfg.User = User{Name: "daemon", Group: "daemon", UID: 1, GID: 1}
	}
	backend := cfg.New(t)
	if err := backend.Check(t.Context()); err != nil {
		t.Fatalf("the backend cannot be tested here: %v", err)
	}
	groups := []struct {
		name        string
		obligations []obligation
		world       bool // it puts things into the World, which the backend has one of
	}{
		{"Backend", backendObligations, false},
		{"Exec", execObligations, false},
		{"Output", outputObligations, false},
		{"End", endObligations, false},
		{"KillTree", killObligations, false},
		{"Upload", uploadObligations, false},
		{"Download", downloadObligations, false},
		{"Mounts", mountObligations, false},
		{"Network", networkObligations, false},
		{"Outside", outsideObligations, true},
		{"Egress", egressObligations, true},
		{"Switching", switchObligations, true},
		{"Listener", listenObligations, true},
		{"Destroy", destroyObligations, false},
		{"Restarter", restartObligations, true},
		{"Abilities", abilityObligations, false},
		{"Snapshots", snapshotObligations, false},
		{"Hardened", hardenedObligations, false},
		{"Prepared", preparedObligations, false},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			if !g.world {
				t.Parallel()
			}
			s := &suite{cfg: cfg, backend: backend, caps: backend.Capabilities(), group: t}
			for _, o := range g.obligations {
				t.Run(o.name, func(t *testing.T) {
					s.require(t, o.needs)
					o.run(t, s)
				})
			}
		})
	}
}
