package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
	"github.com/proctor-run/proctor/sandbox/guest"
	"github.com/proctor-run/proctor/sandbox/internal/entrypoint"
	"github.com/proctor-run/proctor/sandbox/internal/usernet"
	"github.com/proctor-run/proctor/sandbox/oci/internal/network"
	"github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"
	"github.com/proctor-run/proctor/sandbox/oci/internal/storage"
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
	parts    []string // of the root file system, by their paths in the sandbox
	stack    []*layer // of snapshots that it stands on
	storage  int64    // bytes that may be written, 0 for no limit
	written  []string // where that is, as far as it has to be watched

	process *runtimes.Process
	net     *usernet.Net // nil unless the network is the sandbox's own
	client  *guest.Client
	first   *os.File            // pidfd of the sandbox's first process on the host, or nil
	service *entrypoint.Process // the image's entrypoint; nil for none
	gate    *egress.Gate        // nil for none
	wayOut  bool                // gate is there in place of a network of the sandbox's own, and allows everything
	inlets  egress.Inlets
	env     []string // of every command

	watch   *storage.Watch     // over written; nil for none
	watched context.CancelFunc // ends it

	busy chan struct{} // held by the Destroy that is at work
	mu   sync.Mutex
	gone bool // guarded by mu: everything is removed
}

var _ sandbox.Sandbox = (*Sandbox)(nil)

// run starts the runtime and waits for the guest's greeting.
func (s *Sandbox) run(ctx context.Context, begin runtimes.Start, base *base, spec sandbox.Spec) error {
	p, err := begin()
	if err != nil {
		return fmt.Errorf("starting runtime %q: %w", s.backend.runtime.Name(), err)
	}
	s.process = p
	if err := s.openNetwork(spec.Network); err != nil {
		return err
	}
	start, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("no answer within %v", startLimit))
	defer cancel()
	opts := base.guestOptions(s.backend.opts.Build, spec)
	c, err := guest.Dial(start, p.Stdout, p.Stdin, opts)
	if err != nil {
		if ctx.Err() == nil {
			err = p.Diagnose(err)
		}
		return fmt.Errorf("starting runtime %q: %w", s.backend.runtime.Name(), err)
	}
	if s.backend.networkKind(spec.Network) == network.Own && s.net == nil {
		return fmt.Errorf("starting runtime %q: it runs, but there is no device for its network", s.backend.runtime.Name())
	}
	s.client, s.env = c, opts.Env
	if s.first, err = p.First(start); err != nil {
		return fmt.Errorf("starting runtime %q: %w", s.backend.runtime.Name(), err)
	}
	if err := s.openGate(ctx, spec.Network); err != nil {
		return err
	}
	if base.workdir == "" || base.workdir == "/" || spec.Hardened { // where what has to be is made before it is read-only
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

// ID is the container id that the runtime knows.
func (s *Sandbox) ID() string { return s.id }

// Exec runs a command.
func (s *Sandbox) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	if s.gate != nil {
		cmd = s.gate.Command(cmd, s.env)
	}
	if s.watch != nil {
		defer s.watch.Begin(ctx)()
	}
	st, err := s.client.Exec(ctx, cmd)
	return st, s.lost(err)
}

// Mark notes which processes exist now.
func (s *Sandbox) Mark(ctx context.Context) (sandbox.Mark, error) {
	m, err := s.client.Mark(ctx)
	return m, s.lost(err)
}

// KillTree ends everything born since the mark.
func (s *Sandbox) KillTree(ctx context.Context, since sandbox.Mark, grace time.Duration) error {
	return s.lost(s.client.KillTree(ctx, since, grace))
}

// endAll ends every process but the guest.
func (s *Sandbox) endAll(ctx context.Context, grace time.Duration) error {
	s.service.Release()
	s.inlets.Close()
	end := func() error { return s.client.KillAll(ctx, grace) }
	if s.gate == nil {
		return end()
	}
	return s.gate.Renew(ctx, end)
}

// Upload unpacks a tar stream below dir.
func (s *Sandbox) Upload(ctx context.Context, dir string, tar io.Reader) error {
	return s.lost(s.client.Upload(ctx, dir, tar))
}

// Download writes path as a tar stream.
func (s *Sandbox) Download(ctx context.Context, path string, tar io.Writer) error {
	return s.lost(s.client.Download(ctx, path, tar))
}

// Own changes owners, see sandbox.Owner. The sandbox's root is the user.
func (s *Sandbox) Own(ctx context.Context, dir string) error {
	if s.backend.root {
		return nil
	}
	return s.lost(s.client.Own(ctx, dir, 0, 0))
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
	s.shutRelays()
	if err := s.end(ctx); err != nil {
		return err
	}
	if s.net != nil {
		s.net.Close()
	}
	if err := s.awaitRelays(ctx); err != nil {
		return err
	}
	// Runtimes give up on groups that are busy.
	if err := s.backend.groups.Remove(ctx, s.id); err != nil {
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
	if s.watched != nil {
		s.watched()
	}
	if s.client != nil {
		_ = s.client.Close()
	}
	if s.first != nil {
		_ = unix.PidfdSendSignal(int(s.first.Fd()), unix.SIGKILL, nil, 0) // an error means that it is gone
		exit, cancel := context.WithTimeout(ctx, exitLimit)
		defer cancel()
		if s.process.Wait(exit) == nil {
			return s.awaitFirst(ctx)
		}
	}
	s.process.Kill()
	if err := s.process.Wait(ctx); err != nil {
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
	return runtimes.CallerUsers(!b.single.Load()).RemoveTree(ctx, b.opts.Executable, dir)
}
