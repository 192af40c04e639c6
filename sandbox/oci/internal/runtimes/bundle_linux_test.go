package runtimes

import (
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
)

func mountAt(s *specs.Spec, target string) (specs.Mount, bool) {
	i := slices.IndexFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == target })
	if i < 0 {
		return specs.Mount{}, false
	}
	return s.Mounts[i], true
}

func hasNamespace(s *specs.Spec, kind specs.LinuxNamespaceType) bool {
	return slices.ContainsFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == kind })
}

func TestBundle(t *testing.T) {
	t.Parallel()
	b := spec{cgroupsPath: "/proctor/p1", Bundle: &Bundle{
		ID: "p1", Root: rootfs.Root{Dir: "/state/root", State: "/state"}, Hostname: "p1", Guest: "/bin/guest",
		Mounts:    []sandbox.Mount{{Source: "/logs", Target: "/logs"}, {Source: "/tests", Target: "/tests", ReadOnly: true}},
		Resources: sandbox.Resources{CPUs: 1.5, MemoryMB: 64},
	}}
	s := b.config()
	if !slices.Equal(s.Process.Args, []string{GuestPath}) || s.Root.Path != "/state/root" || s.Root.Readonly {
		t.Errorf("process %q in %+v", s.Process.Args, s.Root)
	}
	if s.Process.NoNewPrivileges {
		t.Error("setuid programs cannot work")
	}
	for target, mode := range map[string]string{"/logs": "rw", "/tests": "ro", GuestPath: "ro"} {
		if m, ok := mountAt(s, target); !ok || !slices.Contains(m.Options, mode) {
			t.Errorf("mount at %s: %+v", target, m)
		}
	}
	if *s.Linux.Resources.CPU.Quota != 150_000 || *s.Linux.Resources.Memory.Limit != 64<<20 {
		t.Errorf("limits %+v %+v", s.Linux.Resources.CPU, s.Linux.Resources.Memory)
	}
	if d := s.Linux.Resources.Devices; len(d) != 1 || d[0].Allow {
		t.Errorf("devices %+v, want all denied", d)
	}
	if hasNamespace(s, specs.NetworkNamespace) || !hasNamespace(s, specs.PIDNamespace) || !hasNamespace(s, specs.MountNamespace) {
		t.Errorf("namespaces %v", s.Linux.Namespaces)
	}
	if !slices.Contains(s.Linux.MaskedPaths, "/proc/kcore") || !slices.Contains(s.Linux.ReadonlyPaths, "/proc/sys") || s.Linux.Seccomp == nil {
		t.Error("the host's kernel is not protected")
	}
}

func TestBundleVariants(t *testing.T) {
	t.Parallel()
	if s := (&spec{Bundle: &Bundle{Network: network.None}}).config(); !hasNamespace(s, specs.NetworkNamespace) {
		t.Error("no-network has the host's network namespace")
	}
	if s := (&spec{Bundle: &Bundle{}}).config(); slices.Contains(s.Process.Capabilities.Bounding, "CAP_MKNOD") || s.Linux.Resources != nil {
		t.Error("device nodes can be made without a cgroup that refuses them")
	}
	if s := (&spec{emulated: true, Bundle: &Bundle{}}).config(); s.Linux.Seccomp != nil || len(s.Linux.MaskedPaths) > 0 {
		t.Error("a runtime with its own kernel is told to mask the host's")
	}
	for _, dangerous := range []string{"CAP_SYS_ADMIN", "CAP_SYS_MODULE", "CAP_SYS_PTRACE", "CAP_NET_ADMIN", "CAP_SYS_RAWIO", "CAP_DAC_READ_SEARCH"} {
		if slices.Contains((&spec{cgroupsPath: "/x", Bundle: &Bundle{}}).capabilities(), dangerous) {
			t.Errorf("sandboxes have %s", dangerous)
		}
		// With a kernel of its own the guest has one to begin with, and no command has it:
		// TestCommandsCannotMount.
		own := (&spec{emulated: true, cgroupsPath: "/x", Bundle: &Bundle{}}).capabilities()
		if dangerous != "CAP_SYS_ADMIN" && slices.Contains(own, dangerous) {
			t.Errorf("sandboxes with a kernel of their own have %s", dangerous)
		}
	}
	m, _ := mountAt((&spec{Bundle: &Bundle{Users: &Users{}, Network: network.Host}}).config(), "/sys")
	if m.Type == "sysfs" {
		t.Error("a user namespace cannot mount sysfs for the host's network")
	}
	pts, _ := mountAt((&spec{Bundle: &Bundle{Users: &Users{}}}).config(), "/dev/pts")
	if slices.Contains(pts.Options, "gid=5") {
		t.Error("group 5 is not mapped")
	}
}
