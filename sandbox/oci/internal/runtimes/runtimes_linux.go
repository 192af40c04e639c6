package runtimes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
	"github.com/proctor-run/proctor/sandbox/oci/internal/cgroup"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
)

// Runtime is one kind of sandboxes.
type Runtime interface {
	// Name is GVisor, Native, Runc or Crun.
	Name() string
	// Path of the program; empty for what is built in.
	Path() string
	// Snapshots: what commands write lies in the upper directory of the root file
	// system, and another sandbox can begin with it.
	Snapshots() bool
	// LateMounts: mounts that root makes in the namespaces of a running sandbox are
	// seen in it.
	LateMounts() bool
	// OwnKernel: a sandbox has a kernel of its own, which counts processes, and in which
	// the guest sees to the rest, see package ownkernel.
	OwnKernel() bool
	// Prepare writes what the start of a sandbox needs into its directory.
	Prepare(b *Bundle) (Start, error)
}

// Start starts the process of a sandbox that was prepared. Its guest greets when the
// sandbox is made.
type Start func() (*Process, error)

// Bundle is what a runtime needs to know of one sandbox.
type Bundle struct {
	ID       string
	Dir      string // of the sandbox, absolute: the runtime keeps files of its own there
	Root     rootfs.Root
	Hostname string
	Guest    string // path of the guest program
	// Executable is the path of the running program, for its helpers.
	Executable string
	// GVisor is the path of a program whose Helpers have gVisor, which must need no shared
	// libraries: it is executed where there are none.
	GVisor string
	// Build is that of both programs.
	Build  string
	Mounts []sandbox.Mount
	// Hardened: the root file system is read-only but for Root.Writable, there is a
	// "/tmp" of its own unless Mounts have one, and the guest has no capability that
	// it does not need.
	Hardened bool
	Network  network.Kind
	TUN      string // path of the device that a network of its own is made with
	// Users of the user namespace; nil as root of the host.
	Users *Users
	// Layer: what commands write is wanted in the upper directory.
	Layer bool
	// Groups is where Resources are enforced, nil for nowhere.
	Groups    *cgroup.Place
	Resources sandbox.Resources
}

// The files of runtimes in the directory of a sandbox.
const (
	fileLaunch = "launch.json" // what the helper does, see launch
	fileConfig = "config.json" // of the OCI bundle
	filePID    = "pid"         // the runtime writes the first process here
	dirRuntime = "run"         // the runtime's own state
	dirBound   = "bound"       // in the sandbox's mount namespace: what a program mounts
)

// Targets lists where Mounts lie in the sandbox.
func (b *Bundle) Targets() []string {
	targets := make([]string, 0, len(b.Mounts))
	for _, m := range b.Mounts {
		targets = append(targets, m.Target)
	}
	return targets
}

func (b *Bundle) at(name string) string { return filepath.Join(b.Dir, name) }

// launch is what all runtimes need.
func (b *Bundle) launch() *launch {
	l := &launch{Root: b.Root}
	if b.Network == network.Own {
		l.TUN, l.IPv6 = b.TUN, network.HasIPv6()
	}
	return l
}

// run completes a command line so that it runs the bundle, and stays as the
// sandbox's parent, so that it cleans up behind it.
func (b *spec) run(argv []string) []string {
	return append(argv, "run", "--pid-file="+b.at(filePID), "--bundle="+b.Dir, b.ID)
}

// prepare writes what a program reads, or the helper that becomes it.
func (b *spec) prepare(l *launch) (Start, error) {
	config := b.config()
	if !b.emulated {
		l.Bound = bound(config, filepath.Join(l.Trees, dirBound))
	}
	if err := writeJSON(b.at(fileConfig), config); err != nil {
		return nil, err
	}
	if b.Users != nil {
		if err := writeJSON(b.at(fileLaunch), l); err != nil {
			return nil, err
		}
	}
	return func() (*Process, error) { return startRuntime(l, b.Bundle, nil) }, nil
}

func writeJSON(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	return os.WriteFile(name, data, 0o600)
}
