package runtimes

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/ownkernel"
	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
	"github.com/proctor-run/proctor/sandbox/oci/internal/cgroup"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
)

// gvisor is Bundle.GVisor.
type gvisor struct{}

func (gvisor) Name() string { return GVisor }

func (gvisor) Path() string { return "" }

// Snapshots: what is written stays in gVisor's own kernel.
func (gvisor) Snapshots() bool { return false }

// LateMounts: its kernel knows only what it was started with.
func (gvisor) LateMounts() bool { return false }

func (gvisor) OwnKernel() bool { return true }

func (gvisor) Prepare(b *Bundle) (Start, error) {
	kind := "host"
	if b.Network == network.None {
		kind = "none"
	}
	argv := []string{
		runscArg0, "--root=" + b.at(dirRuntime), "--network=" + kind, "--host-settings=ignore",
		// Setuid programs work as they do with the other runtimes.
		"--allow-suid=" + strconv.FormatBool(!b.Hardened),
	}
	if b.Network == network.Own && !b.Hardened {
		argv = append(argv, "--net-raw=true") // for ping
	}
	if b.Layer {
		// Everything is written to the host's overlay, and at once.
		argv = append(argv, "--overlay2=none", "--file-access=shared")
	} else {
		// The sentry's own overlay on top of the host's, which then only
		// holds mount points, is many times faster: it asks the host for
		// nothing that it has written.
		overlay := "--overlay2=root:dir=" + b.Dir
		if b.Resources.StorageMB > 0 {
			overlay += fmt.Sprintf(",size=%dm", b.Resources.StorageMB)
		}
		argv = append(argv, overlay)
	}
	s := &spec{Bundle: b, emulated: true, groupsShown: true}
	l := b.launch()
	// The groups are not gVisor's to make; what is seen in the sandbox are its own.
	l.Argv, l.Builtin = s.run(append(argv, "--ignore-cgroups", "--in-sandbox-cgroup=v2")), true
	l.Config = b.at(fileConfig)
	if _, err := s.prepare(l); err != nil {
		return nil, err
	}
	return func() (*Process, error) { return startGVisor(l, b) }, nil
}

const (
	// sentryMemory is what gVisor needs beside what the sandbox has, in MiB: for itself
	// and for tasks. The guest ends commands when memory runs out; what they fill until
	// then is in it, and what they have mapped of files may be as much as they have.
	sentryMemory = 256 + ownkernel.Tasks*ownkernel.TaskMemory>>20
	// sentryTasks are tasks of this machine that gVisor needs for itself, and
	// tasksEach what it needs for one of the sandbox.
	sentryTasks, tasksEach = 512, 4
)

// startGVisor starts gVisor in groups of this machine.
func startGVisor(l *launch, b *Bundle) (*Process, error) {
	if b.Groups == nil {
		return startRuntime(l, b, nil)
	}
	groups, err := b.Groups.Make(b.ID, cgroup.Wanted{Resources: around(b.Resources)})
	if err != nil {
		return nil, err
	}
	defer groups.Close()
	return startRuntime(l, b, groups)
}

// around are limits of gVisor that leave the sandbox its own.
func around(r sandbox.Resources) sandbox.Resources {
	if r.MemoryMB > 0 {
		r.MemoryMB += r.MemoryMB + sentryMemory
	}
	if r.PIDs > 0 {
		r.PIDs = sentryTasks + tasksEach*r.PIDs
	}
	return r
}

// withoutMounts takes the mounts of directories from a config.json that others show
// already: gVisor keeps what is written to a directory of the sandbox's own in one
// file there, and refuses a second one.
func withoutMounts(config string, again []rootfs.Writable) error {
	data, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	var s specs.Spec
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("reading %q: %w", config, err)
	}
	s.Mounts = slices.DeleteFunc(s.Mounts, func(m specs.Mount) bool {
		return slices.ContainsFunc(again, func(w rootfs.Writable) bool { return w.At == m.Source })
	})
	return writeJSON(config, &s)
}
