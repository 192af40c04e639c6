package runtimes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox/internal/frames"
	"github.com/proctor-run/proctor/sandbox/internal/native"
	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
	"github.com/proctor-run/proctor/sandbox/oci/internal/cgroup"
)

// diagnosticsLimit bounds what is kept of a runtime's standard error.
const diagnosticsLimit = 8 << 10

// launch is what has to happen in the mount namespace of a sandbox before the
// runtime starts.
type launch struct {
	rootfs.Root
	// HideUnified covers the second cgroup hierarchy of systems that have
	// both, which crun refuses.
	HideUnified bool `json:"hide_unified,omitempty"`
	// Bound is what a program mounts in the sandbox, with its restrictions.
	Bound []rootfs.Bound `json:"bound,omitempty"`
	// TUN makes the device of the network namespace that the sandbox has then;
	// IPv6: it has addresses of both kinds.
	TUN  string `json:"tun,omitempty"`
	IPv6 bool   `json:"ipv6,omitempty"`
	// Argv of the runtime. Builtin: it is the helper itself, as gVisor.
	Argv    []string `json:"argv"`
	Builtin bool     `json:"builtin,omitempty"`
	// Config is the file of the OCI bundle, for Builtin.
	Config string `json:"config,omitempty"`
	// Guest makes the sandbox itself, and native says what it is to make.
	Guest  string `json:"guest,omitempty"`
	native *native.Setup
}

// mountAll makes the mounts. The calling thread is in a mount namespace of its own.
func (l *launch) mountAll() error {
	if err := rootfs.Detach(); err != nil {
		return err
	}
	if l.HideUnified {
		if err := unix.Mount("tmpfs", unifiedDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k"); err != nil {
			return fmt.Errorf("covering %q: %w", unifiedDir, err)
		}
	}
	if err := l.Mount(); err != nil {
		return err
	}
	for _, m := range l.Bound {
		if err := m.Show(); err != nil {
			return fmt.Errorf("preparing the mount of %q: %w", m.Source, err)
		}
	}
	if !l.Builtin || len(l.Again()) == 0 {
		return nil
	}
	return withoutMounts(l.Config, l.Again())
}

// Process is a runtime, or the helper that becomes one. The kernel kills it
// when this process dies.
type Process struct {
	// Stdin and Stdout are the guest's.
	Stdin, Stdout *os.File

	stderr *bounded.Tail
	device *os.File // of the sandbox's own network, or nil
	cmd    *exec.Cmd
	// first is a pidfd of the sandbox's first process, where the runtime is that.
	first *os.File
	// pidFile is where another runtime writes the first process down.
	pidFile string
	done    chan struct{} // closed when the process has been waited for
}

// startRuntime starts the runtime of a sandbox in a mount namespace that only
// the sandbox has, and in groups unless it makes some itself. As root the namespace
// belongs to the thread that starts the runtime, and no other process is needed.
func startRuntime(l *launch, b *Bundle, groups *cgroup.Groups) (*Process, error) {
	ids := b.Users
	p := &Process{stderr: bounded.NewTail(diagnosticsLimit), done: make(chan struct{}), pidFile: filepath.Join(b.Dir, filePID)}
	cmd, err := runtimeCommand(l, b)
	if err != nil {
		return nil, err
	}
	guestIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe for the runtime: %w", err)
	}
	stdout, guestOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, guestIn.Close(), stdin.Close())
	}
	frames.Widen(stdin)
	frames.Widen(stdout)
	p.cmd, p.Stdin, p.Stdout = cmd, stdin, stdout
	cmd.Stdin, cmd.Stdout, cmd.Stderr = guestIn, guestOut, p.stderr
	cmd.WaitDelay = time.Second // for what still holds standard error
	groups.StartIn(cmd)

	enter := func() (err error) {
		if p.device, err = l.enterAsRoot(); err != nil {
			return err
		}
		return groups.Enter()
	}
	if ids != nil {
		enter = func() error { return nil } // the helper does it
	}
	err = p.startOnThread(enter, groups.Leave)
	_ = guestIn.Close()
	_ = guestOut.Close()
	if err == nil && ids != nil {
		if err = ids.apply(cmd); err == nil {
			p.device, err = ids.device()
		}
	}
	if err != nil {
		p.closeDevice()
		if ids != nil {
			ids.closeDevices()
		}
		_ = stdin.Close()
		_ = stdout.Close()
		p.Kill()
		<-p.done
		return nil, err
	}
	return p, nil
}

func runtimeCommand(l *launch, b *Bundle) (*exec.Cmd, error) {
	ids := b.Users
	argv, path, env := l.Argv, l.Argv[0], runtimeEnv()
	if ids != nil {
		argv, path = []string{launchArg0, filepath.Join(b.Dir, fileLaunch)}, b.Executable
	}
	if l.Builtin {
		path, env = b.GVisor, append(env, buildVar+"="+b.Build)
	}
	// The end of the sandbox is its Destroy, not a context.
	cmd := &exec.Cmd{Path: path, Args: argv, Env: env, Dir: "/"}
	// Signals of the terminal are for the caller, who then destroys the sandbox.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if ids == nil {
		return cmd, nil
	}
	if err := ids.prepare(cmd); err != nil || l.TUN == "" {
		return cmd, err
	}
	return cmd, ids.prepareNetwork(cmd)
}

// runtimeEnv holds nothing of the caller's environment, so that no runtime can
// pass it on.
func runtimeEnv() []string { return []string{"PATH=" + defaultPath} }

// enterAsRoot puts the calling thread into the sandbox's namespaces. It returns
// the device of the sandbox's own network if it has one.
func (l *launch) enterAsRoot() (*os.File, error) {
	flags := unix.CLONE_NEWNS
	if l.TUN != "" {
		flags |= unix.CLONE_NEWNET
	}
	if err := unix.Unshare(flags); err != nil {
		return nil, fmt.Errorf("making the sandbox's namespaces: %w", err)
	}
	if err := l.mountAll(); err != nil {
		return nil, err
	}
	return l.makeDevice()
}

// startOnThread runs enter, starts the command and runs leave on a thread that
// lives until the command has ended, because the kernel kills the command with
// it, and that is not used again, because of what enter did to it.
func (p *Process) startOnThread(enter func() error, leave func()) error {
	started := make(chan error)
	go p.onThread(enter, leave, started)
	return <-started
}

func (p *Process) onThread(enter func() error, leave func(), started chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		// The main thread never ends, and it is what /proc/self shows.
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p.onThread(enter, leave, started)
		}()
		<-ended
		runtime.UnlockOSThread()
		return
	}
	err := enter()
	if err == nil {
		err = p.cmd.Start()
	}
	leave()
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // how it ended is in stderr; that it ended is in done
	}
	close(p.done)
}

// Kill ends the process itself. Its sandbox dies with it, or with its pipes.
func (p *Process) Kill() {
	if p.cmd.Process != nil {
		_ = p.cmd.Process.Kill() // an error means that it has ended
	}
}

// Wait returns when the process has ended or ctx has.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TakeDevice returns the device of the sandbox's own network, or nil. The caller
// closes it.
func (p *Process) TakeDevice() *os.File {
	device := p.device
	p.device = nil
	return device
}

func (p *Process) closeDevice() {
	if device := p.TakeDevice(); device != nil {
		_ = device.Close() // nothing that was written waits in it
	}
}

// Diagnose adds what the runtime said to the error that its end caused.
func (p *Process) Diagnose(err error) error {
	select {
	case <-p.done:
	case <-time.After(time.Second): // it hangs instead of failing
		p.Kill()
		<-p.done
	}
	if said := strings.TrimSpace(p.stderr.String()); said != "" {
		return fmt.Errorf("%w: %s", err, said)
	}
	return fmt.Errorf("%w: %v", err, p.cmd.ProcessState)
}
