package runtimes

import (
	"os"
	"strconv"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/proctor-run/proctor/sandbox/internal/hardening"
	"github.com/proctor-run/proctor/sandbox/internal/native"
	"github.com/proctor-run/proctor/sandbox/internal/ownkernel"
	"github.com/proctor-run/proctor/sandbox/oci/internal/cgroup"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
)

// Places inside a sandbox.
const (
	// GuestPath is where the guest supervisor is mounted.
	GuestPath = "/.proctor/" + GuestArg0
	// defaultPath is used where neither the image nor the Spec sets PATH.
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// spec is what an OCI config.json says about one sandbox.
type spec struct {
	*Bundle
	// emulated: the runtime has a kernel of its own, which masks and filters
	// by itself.
	emulated bool
	// cgroupsPath is the group of the sandbox, in which devices are refused; empty
	// for none.
	cgroupsPath string
	// groupsShown: the runtime shows the sandbox its groups.
	groupsShown bool
}

// capabilities are those that container engines give by default, or for a
// hardened sandbox those that its guest takes from its commands.
func (b *spec) capabilities() []string {
	var caps []string
	if b.emulated { // the guest sets limits, and gives it up
		caps = append(caps, "CAP_SYS_ADMIN")
	}
	if b.Hardened {
		for _, name := range append(hardening.Supervisor(), hardening.Taker) {
			caps = append(caps, "CAP_"+name)
		}
		return caps
	}
	caps = append(caps,
		"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID",
		"CAP_KILL", "CAP_NET_BIND_SERVICE", "CAP_SETFCAP",
		"CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT",
	)
	// Raw sockets would show the traffic of the host.
	if b.Network != network.Host {
		caps = append(caps, "CAP_NET_RAW")
	}
	// Whoever can make the node of a disk can read the disk, unless a cgroup
	// refuses to open it, or there are no disks.
	if b.cgroupsPath != "" || b.emulated {
		caps = append(caps, "CAP_MKNOD")
	}
	return caps
}

// config is the runtime configuration (OCI runtime specification 1.2, sections
// "Configuration" and "Linux Container Configuration").
func (b *spec) config() *specs.Spec {
	caps := b.capabilities()
	s := &specs.Spec{
		Version:  "1.0.2", // what every runc and crun in use understands
		Hostname: b.Hostname,
		Root:     &specs.Root{Path: b.Root.Dir, Readonly: b.Hardened},
		Process: &specs.Process{
			Args: b.guestArgs(),
			Env:  []string{"PATH=" + defaultPath},
			Cwd:  "/",
			Capabilities: &specs.LinuxCapabilities{
				Bounding: caps, Effective: caps, Permitted: caps,
			},
			NoNewPrivileges: b.Hardened,
			Rlimits:         b.rlimits(),
		},
		Mounts: b.specMounts(),
		Linux: &specs.Linux{
			Namespaces:  b.namespaces(),
			CgroupsPath: b.cgroupsPath,
			Resources:   b.limits(),
		},
	}
	if b.emulated {
		s.Annotations = b.ownMounts()
	} else {
		s.Linux.MaskedPaths = maskedPaths()
		s.Linux.ReadonlyPaths = b.readOnly()
		s.Linux.Seccomp = refusedCalls()
	}
	return s
}

// rlimits are how many files each process may have open.
func (b *spec) rlimits() []specs.POSIXRlimit {
	most, err := native.MostOpenFiles(HostRoot())
	if err != nil {
		return nil // they have what the caller has
	}
	return []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Hard: most, Soft: most}}
}

// guestArgs start the guest.
func (b *spec) guestArgs() []string {
	if !b.emulated {
		return []string{GuestPath}
	}
	l := ownkernel.Limits{PIDs: max(b.Resources.PIDs, 0)}
	if b.Groups.Limits(cgroup.Memory) {
		l.Memory = b.Resources.MemoryMB << 20
	}
	if b.Groups.Limits(cgroup.Processors) && b.Resources.CPUs > 0 {
		l.CPUQuota, l.CPUPeriod = cgroup.CPUQuota(b.Resources.CPUs), cgroup.CPUPeriod
	}
	return []string{GuestPath, ownkernel.Mode, l.String()}
}

// ownMounts tells gVisor that the writable directories of a hardened sandbox are
// seen by nobody else, so that what is written there can stay in its own kernel as
// what is written to a writable root does.
func (b *spec) ownMounts() map[string]string {
	said := map[string]string{}
	for i, w := range b.Root.Writable {
		name := "dev.gvisor.spec.mount.writable" + strconv.Itoa(i)
		said[name+".source"], said[name+".type"], said[name+".share"] = w.At, "bind", "container"
	}
	return said
}

func (b *spec) namespaces() []specs.LinuxNamespace {
	ns := []specs.LinuxNamespace{
		{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
	}
	if b.Network == network.None {
		ns = append(ns, specs.LinuxNamespace{Type: specs.NetworkNamespace})
	}
	if !b.emulated {
		ns = append(ns, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
	return ns
}

func (b *spec) specMounts() []specs.Mount {
	pts := []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}
	if b.Users == nil || b.Users.Ranged() { // group 5 is mapped
		pts = append(pts, "gid=5")
	}
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: pts},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=67108864"}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
	}
	mounts = append(mounts, b.sysMounts()...)
	mounts = append(mounts, specs.Mount{
		Destination: GuestPath, Type: "bind", Source: b.Guest, Options: []string{"bind", "ro", "nosuid", "nodev"},
	})
	mounts = append(mounts, b.writableMounts()...)
	for _, m := range b.Mounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		options := []string{"rbind", "rprivate", mode}
		if m.Guarded {
			options = append(options, "nosuid", "nodev")
		}
		mounts = append(mounts, specs.Mount{Destination: m.Target, Type: "bind", Source: m.Source, Options: options})
	}
	return mounts
}

// writableMounts are those of a hardened sandbox for what can be written there.
func (b *spec) writableMounts() []specs.Mount {
	if !b.Hardened {
		return nil
	}
	var mounts []specs.Mount
	if !hardening.Taken(hardening.Tmp, b.Targets()) {
		mounts = append(mounts, specs.Mount{
			Destination: hardening.Tmp, Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "mode=" + hardening.TmpMode},
		})
	}
	for _, w := range b.Root.Writable {
		mounts = append(mounts, specs.Mount{
			Destination: w.Path, Type: "bind", Source: w.At, Options: []string{"rbind", "rprivate", "rw", "nosuid", "nodev"},
		})
	}
	return mounts
}

// readOnly are the paths that cannot be written besides a root that is read-only:
// its parts are mounts of their own.
func (b *spec) readOnly() []string {
	if !b.Hardened {
		return readonlyPaths()
	}
	return append(readonlyPaths(), b.Root.Below()...)
}

// sysMounts show /sys read-only. A new sysfs belongs to the network namespace,
// so that the root of a user namespace can mount one only together with a
// network namespace of its own; otherwise it can just bind the host's, with all that
// the host has mounted there. Of that the control groups are kept out: the caller may
// write to some, and they tell what runs on the host.
func (b *spec) sysMounts() []specs.Mount {
	options := []string{"nosuid", "noexec", "nodev", "ro"}
	if b.Users == nil || b.Network != network.Host || b.emulated {
		mounts := []specs.Mount{{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: options}}
		if b.groupsShown {
			if b.emulated { // until the guest has set the limits
				options = []string{"nosuid", "noexec", "nodev"}
			}
			mounts = append(mounts, specs.Mount{Destination: cgroup.Root, Type: "cgroup", Source: "cgroup", Options: options})
		}
		return mounts
	}
	mounts := []specs.Mount{{Destination: "/sys", Type: "none", Source: "/sys", Options: append([]string{"rbind"}, options...)}}
	if info, err := os.Stat(cgroup.Root); err == nil && info.IsDir() {
		mounts = append(mounts, specs.Mount{
			Destination: cgroup.Root, Type: "tmpfs", Source: "tmpfs", Options: append([]string{"mode=755", "size=4k"}, options...),
		})
	}
	return mounts
}

func (b *spec) limits() *specs.LinuxResources {
	if b.cgroupsPath == "" {
		return nil
	}
	// The runtime allows /dev/null and its like again.
	r := &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}}
	if b.Resources.CPUs > 0 {
		period := uint64(cgroup.CPUPeriod)
		quota := cgroup.CPUQuota(b.Resources.CPUs)
		r.CPU = &specs.LinuxCPU{Quota: &quota, Period: &period}
	}
	if b.Resources.MemoryMB > 0 {
		bytes := b.Resources.MemoryMB << 20
		r.Memory = &specs.LinuxMemory{Limit: &bytes}
		if b.Groups.CountsSwap() {
			swapped := cgroup.Swapped(bytes)
			r.Memory.Swap = &swapped
		}
	}
	if b.Resources.PIDs > 0 {
		r.Pids = &specs.LinuxPids{Limit: b.Resources.PIDs}
	}
	return r
}

// maskedPaths show information about the host, or let root change it.
func maskedPaths() []string {
	return []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
		"/sys/firmware", "/sys/devices/virtual/powercap",
	}
}

func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

// refusedCalls makes the system calls fail that change the host or reach
// deep into its kernel, and that commands in containers have no use for. It is
// the short counterpart of the allow lists of container engines: the
// capabilities refuse most of these too.
func refusedCalls() *specs.LinuxSeccomp {
	eperm, enosys := uint(1), uint(38)
	return &specs.LinuxSeccomp{
		DefaultAction: specs.ActAllow,
		Architectures: seccompArchitectures(),
		Syscalls: []specs.LinuxSyscall{
			{Action: specs.ActErrno, ErrnoRet: &eperm, Names: []string{
				"acct", "add_key", "bpf", "clock_adjtime", "clock_settime", "create_module", "delete_module",
				"finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "get_kernel_syms", "init_module",
				"ioperm", "iopl", "kcmp", "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "mount",
				"mount_setattr", "move_mount", "move_pages", "nfsservctl", "open_by_handle_at", "open_tree", "perf_event_open",
				"pivot_root", "query_module", "quotactl", "quotactl_fd", "reboot", "request_key", "setns", "settimeofday",
				"stime", "swapoff", "swapon", "syslog", "umount", "umount2", "unshare", "uselib", "userfaultfd", "ustat",
				"vhangup", "vm86", "vm86old",
			}},
			// Programs fall back to epoll when there is no io_uring.
			{Action: specs.ActErrno, ErrnoRet: &enosys, Names: []string{"io_uring_enter", "io_uring_register", "io_uring_setup"}},
			// A user namespace would give all capabilities again. clone3 has its
			// flags in memory, where filters cannot look; libc falls back to clone.
			{Action: specs.ActErrno, ErrnoRet: &enosys, Names: []string{"clone3"}},
			{Action: specs.ActErrno, ErrnoRet: &eperm, Names: []string{"clone"}, Args: []specs.LinuxSeccompArg{{
				Index: 0, Value: cloneNewUser, ValueTwo: cloneNewUser, Op: specs.OpMaskedEqual,
			}}},
		},
	}
}

const cloneNewUser = 0x10000000
