// Package hardening says what a hardened sandbox is (sandbox.Spec, Hardened), for
// the backends that make one.
package hardening

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/sandbox"
)

// Complete says in a Spec what follows from its being hardened: which it also is
// with always. pids is the backend's own bound on processes, as that of
// sandbox.Resources.
func Complete(spec sandbox.Spec, always bool, pids int64) sandbox.Spec {
	spec.Hardened = spec.Hardened || always
	if !spec.Hardened {
		return spec
	}
	spec.Resources.PIDs = PIDs(cmp.Or(spec.Resources.PIDs, pids))
	spec.Network.Mode = cmp.Or(spec.Network.Mode, sandbox.NetworkNone)
	return spec
}

// PIDs is the bound on processes of a hardened sandbox for which another one is
// asked; 0 and less are none.
func PIDs(asked int64) int64 {
	if asked <= 0 || asked > sandbox.HardenedPIDs {
		return sandbox.HardenedPIDs
	}
	return asked
}

// Writable lists the directories that a hardened sandbox can write, besides Tmp:
// those of sandbox.HardenedWritable, and workdir if it is in none of them. What is
// mounted at taken is not listed.
func Writable(workdir string, taken []string) []string {
	dirs := sandbox.HardenedWritable()
	workdir = path.Clean(workdir)
	below := func(parent string) bool { return workdir == parent || strings.HasPrefix(workdir, parent+"/") }
	if path.IsAbs(workdir) && workdir != "/" && !below(Tmp) && !slices.ContainsFunc(dirs, below) {
		dirs = append(dirs, workdir)
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return Taken(dir, taken) })
}

// Taken reports whether something is mounted at dir, where taken says what is.
func Taken(dir string, taken []string) bool {
	return slices.ContainsFunc(taken, func(t string) bool { return path.Clean(t) == dir })
}

// Tmp is the directory in which everybody may write. It is empty, in memory, with
// TmpMode, and shows neither set-uid programs nor devices.
const (
	Tmp     = "/tmp"
	TmpMode = "1777"
)

// Supervisor lists the capabilities, without "CAP_", without which a supervisor that
// is root can neither run commands as every user nor end and read what they leave.
func Supervisor() []string {
	return []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"}
}

// Taker is the capability besides with which a supervisor takes all of them from
// commands.
const Taker = "SETPCAP"
