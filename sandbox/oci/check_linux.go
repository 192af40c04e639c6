package oci

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
	"github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"
)

// Check makes a sandbox, on the host's root so that it needs no image, and
// removes it.
func (b *Backend) Check(ctx context.Context) error {
	probe := &Backend{opts: b.opts, runtime: b.runtime, owner: b.owner, root: b.root, groups: b.groups, noTUN: b.noTUN}
	probe.opts.OwnRoot = true
	probe.single.Store(b.single.Load())
	s, err := probe.Create(ctx, sandbox.Spec{Name: "check"})
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, sandbox.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)
		}
		return err
	}
	b.single.Store(probe.single.Load())
	return s.Destroy(ctx)
}

// Runtimes tries each runtime with the given options and says which can be
// used here.
func Runtimes(ctx context.Context, opts Options) []RuntimeStatus {
	var all []RuntimeStatus
	for _, name := range []string{RuntimeGVisor, RuntimeNative, RuntimeRunc, RuntimeCrun} {
		opts.Runtime = name
		status := RuntimeStatus{Name: name}
		b, err := New(opts)
		if err == nil {
			status.Path = b.runtimePath()
			err = b.Check(ctx)
		}
		status.Available = err == nil
		if err != nil {
			if status.Reason, status.Fix = sandbox.Why(err); status.Fix == "" {
				status.Fix = fixFor(name, status.Path)
			}
		}
		all = append(all, status)
	}
	return all
}

// runtimePath is where the runtime's program is; empty when it is not installed, or this
// one.
func (b *Backend) runtimePath() string {
	if b.runtime.Name() == RuntimeGVisor && b.opts.GVisor != b.opts.Executable {
		return b.opts.GVisor
	}
	return b.runtime.Path()
}

func fixFor(name, path string) string {
	if name != RuntimeGVisor && name != RuntimeNative && path == "" {
		return fmt.Sprintf("install the package %q, or use the runtime %q", name, RuntimeGVisor)
	}
	return "use another runtime, or -e docker"
}

// lacking is what the machine lacks for any sandbox, and the error that shows it.
func lacking(err error, fix, missing string, args ...any) error {
	return &sandbox.UnavailableError{Err: fmt.Errorf("%s: %w", fmt.Sprintf(missing, args...), err), Fix: fix}
}

// explain turns the failure of a start into what the machine lacks, where that
// can be told.
func (b *Backend) explain(err error) error {
	const otherwise = ", or run as root, or use -e docker"
	if dynamic, _ := needsLibraries(b.opts.GVisor); dynamic && b.runtime.Name() == RuntimeGVisor {
		return lacking(err, "build it with CGO_ENABLED=0, or choose another runtime, or use -e docker",
			"%q needs shared libraries, and gVisor executes it where there are none", b.opts.GVisor)
	}
	if b.root {
		if errors.Is(err, unix.EPERM) {
			return lacking(err, "run it with --privileged, or on the host, or use -e docker",
				"root is not allowed to make namespaces or to mount here, probably because this is a container")
		}
		return err
	}
	for _, s := range userNamespaceSwitches {
		if strings.TrimSpace(hostfile.Small(s.file)) == s.off {
			return lacking(err, s.fix+otherwise, "%s", s.missing)
		}
	}
	if _, statErr := os.Stat("/proc/self/ns/user"); errors.Is(statErr, fs.ErrNotExist) {
		return lacking(err, "use another kernel"+otherwise, "the kernel has no user namespaces")
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EACCES) || runtimes.Refused(err) {
		return lacking(err, "allow them (in a container: run it with a seccomp and AppArmor profile that permits unshare and mount)"+otherwise,
			"ordinary users are not allowed to make user namespaces here")
	}
	return err
}

// needsLibraries reports whether a program is linked with shared libraries.
func needsLibraries(program string) (bool, error) {
	f, err := elf.Open(program)
	if err != nil {
		return false, fmt.Errorf("looking at %q: %w", program, err)
	}
	defer func() { _ = f.Close() }()
	return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), nil
}

// userNamespaceSwitches are the settings that keep ordinary users from making
// namespaces, or from being root in them.
var userNamespaceSwitches = []struct{ file, off, missing, fix string }{
	{
		"/proc/sys/user/max_user_namespaces", "0",
		"user.max_user_namespaces is 0, so that ordinary users cannot make user namespaces",
		"set it with: sysctl user.max_user_namespaces=10000",
	},
	{
		"/proc/sys/kernel/unprivileged_userns_clone", "0",
		"kernel.unprivileged_userns_clone is 0, so that ordinary users cannot make user namespaces",
		"set it with: sysctl kernel.unprivileged_userns_clone=1",
	},
	{
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
		"kernel.apparmor_restrict_unprivileged_userns is 1, so that ordinary users have no rights in their user namespaces",
		"set it with: sysctl kernel.apparmor_restrict_unprivileged_userns=0",
	},
}
