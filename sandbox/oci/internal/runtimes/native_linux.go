package runtimes

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox/internal/native"
	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
	"github.com/proctor-run/proctor/sandbox/oci/internal/cgroup"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
	"github.com/proctor-run/proctor/sandbox/oci/internal/seccomp"
)

// The runtime "native" is no program. The guest itself is started in new
// namespaces and makes the sandbox around itself, see package native; it is the
// only process that is started.

// defaultFilter is compiled once: it is the same for all sandboxes.
var defaultFilter = sync.OnceValue(seccomp.Default)

type nativeRuntime struct{}

func (nativeRuntime) Name() string { return Native }

func (nativeRuntime) Path() string { return "" }

func (nativeRuntime) Snapshots() bool { return true }

func (nativeRuntime) LateMounts() bool { return true }

func (nativeRuntime) OwnKernel() bool { return false }

// Prepare writes something down only for the helper.
func (nativeRuntime) Prepare(b *Bundle) (Start, error) {
	bn := &spec{Bundle: b}
	if b.Groups != nil && cgroup.GuardsDevices() {
		bn.cgroupsPath = b.Groups.Path(b.ID)
	}
	l := b.launch()
	l.native, l.Guest = bn.setup(b.Root), b.Guest
	n := nativeStart{launch: l, bundle: b}
	if n.viaHelper() {
		if err := writeJSON(filepath.Join(b.Dir, fileLaunch), l); err != nil {
			return nil, err
		}
	}
	return n.limited, nil
}

// setup says what the guest makes of the bundle.
func (b *spec) setup(root rootfs.Root) *native.Setup {
	s := &native.Setup{
		Root: root, Hostname: b.Hostname, UserNS: b.Users != nil, Loopback: b.Network == network.None,
		Masked: maskedPaths(), ReadOnly: readonlyPaths(), ReadOnlyRoot: b.Hardened, Filter: defaultFilter(),
	}
	for _, name := range b.capabilities() {
		s.Capabilities |= 1 << capabilityNumbers[name]
	}
	for _, m := range b.specMounts() {
		s.Mounts = append(s.Mounts, mountOf(m.Destination, m.Type, m.Source, m.Options))
	}
	return s
}

var capabilityNumbers = map[string]uint{
	"CAP_AUDIT_WRITE": unix.CAP_AUDIT_WRITE, "CAP_CHOWN": unix.CAP_CHOWN, "CAP_DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE,
	"CAP_FOWNER": unix.CAP_FOWNER, "CAP_FSETID": unix.CAP_FSETID, "CAP_KILL": unix.CAP_KILL, "CAP_MKNOD": unix.CAP_MKNOD,
	"CAP_NET_BIND_SERVICE": unix.CAP_NET_BIND_SERVICE, "CAP_NET_RAW": unix.CAP_NET_RAW, "CAP_SETFCAP": unix.CAP_SETFCAP,
	"CAP_SETGID": unix.CAP_SETGID, "CAP_SETPCAP": unix.CAP_SETPCAP, "CAP_SETUID": unix.CAP_SETUID, "CAP_SYS_CHROOT": unix.CAP_SYS_CHROOT,
}

// mountFlags are the options of mounts that are flags for the kernel; the
// others are for the file system.
var mountFlags = map[string]uintptr{
	"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC, "strictatime": unix.MS_STRICTATIME,
	"rbind": unix.MS_REC, "bind": 0, "rw": 0, "rprivate": 0, // private is everything there
}

// mountOf is a mount of a bundle in the words of package native.
func mountOf(target, fsType, source string, options []string) native.Mount {
	m := native.Mount{Target: target, Source: source, Type: fsType}
	if slices.Contains(options, "bind") || slices.Contains(options, "rbind") {
		m.Type = ""
	}
	for _, o := range options {
		if flag, ok := mountFlags[o]; ok {
			m.Flags |= flag
			continue
		}
		if m.Data != "" {
			m.Data += ","
		}
		m.Data += o
	}
	return m
}

// nativeStart is what has to happen between the start of a guest and its
// making the sandbox.
type nativeStart struct {
	launch *launch
	bundle *Bundle
	groups *cgroup.Groups // nil without limits
}

// limited starts the guest in its groups.
func (n nativeStart) limited() (*Process, error) {
	if n.bundle.Groups != nil {
		g, err := n.bundle.Groups.Make(n.bundle.ID, cgroup.Wanted{Resources: n.bundle.Resources, Devices: true, Shown: true})
		if err != nil {
			return nil, err
		}
		defer g.Close()
		n.groups = g
		n.launch.native.Mounts = append(n.launch.native.Mounts, groupMounts(g.View())...)
	}
	return n.start()
}

// start starts the guest. It greets when the sandbox is made.
func (n *nativeStart) start() (_ *Process, err error) {
	p := &Process{stderr: bounded.NewTail(diagnosticsLimit), done: make(chan struct{})}
	var files []*os.File
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				files = append(files, r, w)
			}
		}
		return r, w
	}
	guestIn, stdin := pipe()
	stdout, guestOut := pipe()
	setup, tell := pipe()
	defer func() {
		for _, f := range files {
			if err != nil || (f != stdin && f != stdout) {
				_ = f.Close()
			}
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("making pipes: %w", err)
	}
	p.Stdin, p.Stdout = stdin, stdout
	p.cmd = &exec.Cmd{Env: runtimeEnv(), Dir: "/", WaitDelay: time.Second, Stdin: guestIn, Stdout: guestOut, Stderr: p.stderr}
	pidfd := -1
	if err := n.prepare(p.cmd, &pidfd); err != nil {
		return nil, err
	}
	p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, setup)
	if err := p.startOnThread(func() error { return n.enter(p) }, n.leave); err != nil {
		p.closeDevice()
		return nil, err
	}
	if pidfd >= 0 {
		p.first = os.NewFile(uintptr(pidfd), "pidfd")
	}
	_ = setup.Close() // so that who tells notices that nobody listens
	if err := n.arrange(p, tell); err != nil {
		p.closeDevice()
		p.Kill()
		<-p.done
		return nil, err
	}
	return p, nil
}

// viaHelper: only in the user namespace can the device of the network be made,
// with more code than the guest has.
func (n *nativeStart) viaHelper() bool { return n.bundle.Users != nil && n.launch.TUN != "" }

// prepare says what is started, and in which namespaces.
func (n *nativeStart) prepare(cmd *exec.Cmd, pidfd *int) error {
	// Signals of the terminal are for the caller, who then destroys the sandbox.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true, PidFD: pidfd}
	cmd.Path, cmd.Args = n.launch.Guest, []string{GuestArg0, native.Mode}
	if n.viaHelper() {
		cmd.Path, cmd.Args = n.bundle.Executable, []string{launchArg0, filepath.Join(n.bundle.Dir, fileLaunch)}
		if err := n.bundle.Users.prepare(cmd); err != nil {
			return err
		}
		if err := n.bundle.Users.prepareNetwork(cmd); err != nil {
			return err
		}
	} else if n.bundle.Users != nil {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		n.bundle.Users.users(cmd.SysProcAttr)
	}
	cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if n.launch.native.Loopback {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET
	}
	n.groups.StartIn(cmd)
	return nil
}

// enter prepares the thread that starts the guest.
func (n *nativeStart) enter(p *Process) (err error) {
	if n.bundle.Users != nil {
		return nil
	}
	if n.launch.TUN != "" {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("making a network namespace: %w", err)
		}
		if p.device, err = n.launch.makeDevice(); err != nil {
			return err
		}
	}
	if err := native.LimitThread(n.launch.native.Capabilities); err != nil {
		return fmt.Errorf("limiting what the sandbox can do: %w", err)
	}
	return n.groups.Enter()
}

// leave takes the thread out of the sandbox's groups, which could not be removed
// with it.
func (n *nativeStart) leave() { n.groups.Leave() }

// groupMounts show a sandbox its control groups.
func groupMounts(view []cgroup.Shown) []native.Mount {
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	var mounts []native.Mount
	if len(view) > 0 && view[0].Target != cgroup.Root {
		mounts = append(mounts, native.Mount{Target: cgroup.Root, Type: "tmpfs", Source: "tmpfs", Flags: safe, Data: "mode=755,size=64k", Seal: true})
	}
	for _, v := range view {
		mounts = append(mounts, native.Mount{Target: v.Target, Source: v.Source, Flags: safe | unix.MS_RDONLY})
	}
	return mounts
}

// arrange does what the guest waits for, from outside, and tells it what to make.
func (n *nativeStart) arrange(p *Process, tell *os.File) (err error) {
	switch {
	case n.viaHelper():
		if err := n.bundle.Users.apply(p.cmd); err != nil {
			n.bundle.Users.closeDevices()
			return err
		}
		if p.device, err = n.bundle.Users.device(); err != nil {
			return err
		}
	case n.bundle.Users != nil:
		if err := n.bundle.Users.mapRanges(p.cmd.Process.Pid); err != nil {
			return err
		}
		n.launch.native.Mapped = n.bundle.Users.Ranged()
	}
	err = json.NewEncoder(tell).Encode(n.launch.native)
	if errors.Is(err, unix.EPIPE) {
		return nil // it has failed, and says so on its standard error
	}
	if err == nil {
		err = tell.Close()
	}
	if err != nil {
		return fmt.Errorf("sending the setup to the guest: %w", err)
	}
	return nil
}
