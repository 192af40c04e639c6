package runtimes

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
)

// gvisor is the program itself, executed again.
type gvisor struct{}

func (gvisor) Name() string { return GVisor }

func (gvisor) Path() string { return "" }

// Snapshots: what is written stays in gVisor's own kernel.
func (gvisor) Snapshots() bool { return false }

// LateMounts: its kernel knows only what it was started with.
func (gvisor) LateMounts() bool { return false }

func (gvisor) Limits() bool { return false }

// Static: gVisor executes the program where there are no libraries.
func (gvisor) Static() bool { return true }

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
		argv = append(argv, "--overlay2=root:dir="+b.Dir)
	}
	s := &spec{Bundle: b, emulated: true}
	l := b.launch()
	l.Argv, l.Builtin = s.run(append(argv, "--ignore-cgroups")), true
	l.Config = b.at(fileConfig)
	return s.prepare(l)
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
