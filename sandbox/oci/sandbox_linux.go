package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
	"github.com/proctor-run/proctor/sandbox/guest"
	"github.com/proctor-run/proctor/sandbox/internal/usernet"
)

const (
	// startLimit bounds the start of a runtime up to the guest's greeting.
	startLimit = 60 * time.Second
	// destroyLimit bounds the removal of a sandbox that could not be created.
	destroyLimit = 30 * time.Second
	// exitLimit is how long a runtime has to clean up when its sandbox has been
	// killed. Then it is killed itself.
	exitLimit = 10 * time.Second
)

// Sandbox is what runs of a sandbox, until it is destroyed or begun anew; see
// renewable.
type Sandbox struct {
	backend  *Backend
	id       string
	dir      string
	hostname string
	ids      *idMap   // nil as root of the host
	parts    []string // of the root file system, by their paths in the sandbox
	stack    []*layer // of snapshots that it stands on

	process *process
	net     *usernet.Net // nil unless the network is the sandbox's own
	client  *guest.Client
	first   *os.File     // pidfd of the sandbox's first process on the host, or nil
	gate    *egress.Gate // nil for none
	env     []string     // of every command

	busy chan struct{} // held by the Destroy that is at work
	mu   sync.Mutex
	gone bool // guarded by mu: everything is removed
}

var _ sandbox.Sandbox = (*Sandbox)(nil)

// run starts the runtime and waits for the guest's greeting.
func (s *Sandbox) run(ctx context.Context, l *launch, base *base, spec sandbox.Spec) error {
	p, err := s.startProcess(l, spec)
	if err != nil {
		return fmt.Errorf("starting runtime %q: %w", s.backend.runtime.name, err)
	}
	s.process = p
	if err := s.openNetwork(spec.Network); err != nil {
		return err
	}
	start, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("no answer within %v", startLimit))
	defer cancel()
	opts := base.guestOptions(s.backend.opts.Build, spec)
	c, err := guest.Dial(start, p.stdout, p.stdin, opts)
	if err != nil {
		if ctx.Err() == nil {
			err = p.diagnose(err)
		}
		return fmt.Errorf("starting runtime %q: %w", s.backend.runtime.name, err)
	}
	if l.TUN != "" && s.net == nil {
		return fmt.Errorf("starting runtime %q: it runs, but there is no device for its network", s.backend.runtime.name)
	}
	s.client, s.env = c, opts.Env
	if s.first = p.first; l.native == nil {
		if s.first, err = s.openFirst(start, p.done); err != nil {
			return fmt.Errorf("starting runtime %q: %w", s.backend.runtime.name, err)
		}
	}
	if err := s.openGate(ctx, spec.Network); err != nil {
		return err
	}
	if base.workdir == "" || base.workdir == "/" {
		return nil
	}
	var empty bytes.Buffer
	if err := tar.NewWriter(&empty).Close(); err != nil {
		return fmt.Errorf("making an empty archive: %w", err)
	}
	if err := c.Upload(ctx, base.workdir, &empty); err != nil {
		return fmt.Errorf("creating the working directory %q: %w", base.workdir, err)
	}
	return nil
}

// startProcess starts the runtime, or the guest that makes the sandbox itself.
func (s *Sandbox) startProcess(l *launch, spec sandbox.Spec) (*process, error) {
	if l.native == nil {
		return startRuntime(l, filepath.Join(s.dir, fileLaunch), s.ids, s.backend.opts.Executable)
	}
	n := nativeStart{launch: l, launchFile: filepath.Join(s.dir, fileLaunch), executable: s.backend.opts.Executable, ids: s.ids}
	if s.backend.cgroups {
		g, err := makeGroups(cgroupRoot, s.id, s.backend.resources(spec))
		if err != nil {
			return nil, err
		}
		defer g.close()
		n.groups = g
	}
	return n.start()
}

// diagnose adds what the runtime said to the error that its end caused.
func (p *process) diagnose(err error) error {
	select {
	case <-p.done:
	case <-time.After(time.Second): // it hangs instead of failing
		p.kill()
		<-p.done
	}
	if said := strings.TrimSpace(p.stderr.String()); said != "" {
		return fmt.Errorf("%w: %s", err, said)
	}
	return fmt.Errorf("%w: %v", err, p.cmd.ProcessState)
}

// pidPoll is how often it is looked whether the runtime has written a pid down.
const pidPoll = 2 * time.Millisecond

// openFirst returns a handle of the process that the runtime writes down, or nil
// where the kernel has no such handles. Runtimes write when the process runs, so
// that the guest may have greeted before. While the guest is connected it lives,
// so that its pid means nothing else. ended is closed when the runtime has ended.
func (s *Sandbox) openFirst(ctx context.Context, ended <-chan struct{}) (*os.File, error) {
	for {
		pid, err := readPID(filepath.Join(s.dir, filePID))
		if err != nil {
			return nil, err
		}
		if pid != 0 {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return nil, nil // the sandbox works without, see end
			}
			return os.NewFile(uintptr(fd), "pidfd"), nil
		}
		select {
		case <-time.After(pidPoll):
		case <-ended:
			return nil, errors.New("the runtime has ended and has not said which process is the sandbox's first")
		case <-ctx.Done():
			return nil, fmt.Errorf("the runtime has not said which process is the sandbox's first: %w", context.Cause(ctx))
		}
	}
}

// readPID reads a file with a pid. It is 0 as long as the file is not there or
// empty.
func readPID(name string) (int, error) {
	data, err := os.ReadFile(name)
	text := strings.TrimSpace(string(data))
	if errors.Is(err, os.ErrNotExist) || (err == nil && text == "") {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading which process is the sandbox's first: %w", err)
	}
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("the runtime says that the sandbox's first process is %.40q", text)
	}
	return pid, nil
}

// ID is the container id that the runtime knows.
func (s *Sandbox) ID() string { return s.id }

// Exec runs a command.
func (s *Sandbox) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	if s.gate != nil {
		cmd = s.gate.Command(cmd, s.env)
	}
	return s.client.Exec(ctx, cmd)
}

// Mark notes which processes exist now.
func (s *Sandbox) Mark(ctx context.Context) (sandbox.Mark, error) { return s.client.Mark(ctx) }

// KillTree ends everything born since the mark.
func (s *Sandbox) KillTree(ctx context.Context, since sandbox.Mark, grace time.Duration) error {
	return s.client.KillTree(ctx, since, grace)
}

// Upload unpacks a tar stream below dir.
func (s *Sandbox) Upload(ctx context.Context, dir string, tar io.Reader) error {
	return s.client.Upload(ctx, dir, tar)
}

// Download writes path as a tar stream.
func (s *Sandbox) Download(ctx context.Context, path string, tar io.Writer) error {
	return s.client.Download(ctx, path, tar)
}

// Destroy kills everything in the sandbox, waits until it is gone and removes
// what was made for it. When it fails, a later call continues.
func (s *Sandbox) Destroy(ctx context.Context) error {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return fmt.Errorf("destroying sandbox %q: %w", s.id, context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil
	}
	if err := s.destroy(ctx); err != nil {
		return fmt.Errorf("destroying sandbox %q: %w", s.id, err)
	}
	s.gone = true
	return nil
}

func (s *Sandbox) destroy(ctx context.Context) error {
	if s.gate != nil {
		s.gate.Shut()
	}
	if err := s.end(ctx); err != nil {
		return err
	}
	if s.net != nil {
		s.net.Close()
	}
	if s.gate != nil {
		if err := s.gate.Wait(ctx); err != nil {
			return err
		}
	}
	// Runtimes give up on groups that are busy.
	if err := removeCgroups(ctx, s.id); err != nil {
		return err
	}
	removeSockets(s.id)
	if err := s.backend.removeDir(ctx, s.dir); err != nil {
		return err
	}
	if s.first != nil {
		_ = s.first.Close() // nothing was written
	}
	return nil
}

// end kills the processes of the sandbox and returns when they are gone.
func (s *Sandbox) end(ctx context.Context) error {
	if s.process == nil {
		return nil
	}
	if s.client != nil {
		_ = s.client.Close()
	}
	if s.first != nil {
		_ = unix.PidfdSendSignal(int(s.first.Fd()), unix.SIGKILL, nil, 0) // an error means that it is gone
		exit, cancel := context.WithTimeout(ctx, exitLimit)
		defer cancel()
		if s.process.wait(exit) == nil {
			return s.awaitFirst(ctx)
		}
	}
	s.process.kill()
	if err := s.process.wait(ctx); err != nil {
		return fmt.Errorf("waiting for the runtime: %w", err)
	}
	return killOf(ctx, s.id)
}

// awaitFirst proves that the first process is gone: the kernel reports its
// handle as readable.
func (s *Sandbox) awaitFirst(ctx context.Context) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.first.Fd()), Events: unix.POLLIN}}, 100)
		if n == 1 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("poll", err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// removeDir removes a sandbox's directory, as root of a user namespace where
// it holds files of other users.
func (b *Backend) removeDir(ctx context.Context, dir string) error {
	err := removeTree(dir)
	if b.root || !errors.Is(err, os.ErrPermission) {
		return err
	}
	ids := callerIDs(!b.single.Load())
	cmd := exec.CommandContext(ctx, b.opts.Executable)
	cmd.Args, cmd.Env = []string{removeArg0, dir}, runtimeEnv()
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if err := ids.prepare(cmd); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("removing %q: %w", dir, err)
	}
	if err := ids.apply(cmd); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("removing %q: %w: %s", dir, err, strings.TrimSpace(said.String()))
	}
	return nil
}

func writeJSON(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	return os.WriteFile(name, data, 0o600)
}
