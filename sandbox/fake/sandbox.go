package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

type state int

const (
	creating state = iota
	running
	stopped
	destroyed
)

// Sandbox is a sandbox of a Backend.
type Sandbox struct {
	b      *Backend
	id     string
	number int
	spec   sandbox.Spec
	dir    string // on the host; the root file system is in it
	files  files
	origin []byte // the archive of files that it begins with; nil for the image's

	mu    sync.Mutex
	state state
	born  int // processes so far
	procs map[int]*proc
	net   sandbox.Network
	doors map[*door]struct{} // that are open
}

var (
	_ sandbox.Sandbox   = (*Sandbox)(nil)
	_ sandbox.Resetter  = (*Sandbox)(nil)
	_ sandbox.Restarter = (*Sandbox)(nil)
	_ sandbox.Stopper   = (*Sandbox)(nil)

	_ sandbox.NetworkSwitcher = (*Sandbox)(nil)
)

// proc is a process under way: a command or what one left running.
type proc struct {
	number int // in the order of birth
	exec   int // the number of the command it belongs to while that is under way
	cancel context.CancelCauseFunc
	done   chan struct{}
}

func newSandbox(b *Backend, spec sandbox.Spec) *Sandbox {
	return &Sandbox{b: b, spec: spec, procs: map[int]*proc{}, net: spec.Network, doors: map[*door]struct{}{}}
}

// ID is the backend's name and a number.
func (s *Sandbox) ID() string { return s.id }

// Spec is what the sandbox was created from.
func (s *Sandbox) Spec() sandbox.Spec { return s.spec }

func (s *Sandbox) getState() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s *Sandbox) setState(to state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = to
}

// do records a call and does it when the sandbox is running.
func (s *Sandbox) do(ctx context.Context, c *Call, work func() error) error {
	c.Sandbox = s.spec.Name
	err := s.b.call(ctx, c, func() error {
		if err := s.usable(c.Op); err != nil {
			return err
		}
		return work()
	})
	if err != nil {
		return fmt.Errorf("%s in sandbox %q: %w", c.Op, s.spec.Name, err)
	}
	return nil
}

func (s *Sandbox) usable(op Op) error {
	switch s.getState() {
	case creating:
		s.b.violate("%s in sandbox %q before Create has returned", op, s.spec.Name)
		return errors.New("the sandbox is not created yet")
	case running:
		return nil
	case stopped:
		s.b.violate("%s in sandbox %q after Stop", op, s.spec.Name)
		return errors.New("the sandbox is stopped")
	default:
		s.b.violate("%s in sandbox %q after Destroy", op, s.spec.Name)
		return sandbox.ErrDestroyed
	}
}

// Exec lets the first rule that matches handle the command.
func (s *Sandbox) Exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	seen := cmd
	seen.Stdin, seen.Stdout, seen.Stderr = nil, nil, nil
	seen.Argv, seen.Env = slices.Clone(cmd.Argv), slices.Clone(cmd.Env)
	c := &Call{Op: OpExec, Command: seen, Network: s.network()}
	var st sandbox.ExitStatus
	err := s.do(ctx, c, func() (err error) {
		st, err = s.exec(ctx, cmd)
		return err
	})
	s.b.mu.Lock()
	c.Status = st
	s.b.mu.Unlock()
	return st, err
}

func (s *Sandbox) exec(ctx context.Context, cmd sandbox.Command) (sandbox.ExitStatus, error) {
	pctx, me, err := s.begin(0)
	if err != nil {
		return sandbox.ExitStatus{}, err
	}
	defer s.end(me)
	defer context.AfterFunc(ctx, func() { me.cancel(errInterrupt) })()
	if cmd.Timeout > 0 {
		defer time.AfterFunc(cmd.Timeout, func() { me.cancel(errTimedOut) }).Stop()
	}
	p := newProcess(s, cmd)
	p.number = me.number
	defer p.Stdout.(*sink).close()
	defer p.Stderr.(*sink).close()
	code, err := s.handler(cmd)(pctx, p) //nolint:contextcheck // a process lives in its sandbox; AfterFunc ends it with ctx
	switch {
	case err == nil:
		return sandbox.ExitStatus{Code: code, NotStarted: p.refused}, nil
	case errors.Is(err, errTimedOut):
		s.endFamily(me)
		return sandbox.ExitStatus{Code: 128 + 15, TimedOut: true}, nil
	case errors.Is(err, errInterrupt):
		s.endFamily(me)
		return sandbox.ExitStatus{Code: 128 + 15}, context.Cause(ctx)
	case errors.Is(err, errKilled):
		return sandbox.ExitStatus{Code: 128 + 15}, nil
	default:
		return sandbox.ExitStatus{}, err
	}
}

func (s *Sandbox) handler(cmd sandbox.Command) Handler {
	for _, r := range s.b.cfg.Rules {
		if r.Match(cmd) {
			return r.Do
		}
	}
	return Exit(0)
}

// begin books a process of the given command, or of one of its own.
func (s *Sandbox) begin(command int) (context.Context, *proc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != running {
		return nil, nil, sandbox.ErrDestroyed
	}
	s.born++
	if command == 0 {
		command = s.born
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	p := &proc{number: s.born, exec: command, cancel: cancel, done: make(chan struct{})}
	s.procs[p.number] = p
	return ctx, p, nil
}

func (s *Sandbox) end(p *proc) {
	p.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.procs, p.number)
	close(p.done)
}

// background starts a process that its command p leaves behind.
func (s *Sandbox) background(p *Process, do Handler) {
	ctx, me, err := s.begin(p.number)
	if err != nil {
		return
	}
	left := *p
	left.Stdin, left.Stdout, left.Stderr = strings.NewReader(""), &sink{}, &sink{}
	go func() { // endAll waits for it
		defer s.end(me)
		_, _ = do(ctx, &left)
	}()
}

// endFamily ends what was born since a command and belongs to no other one
// under way.
func (s *Sandbox) endFamily(me *proc) {
	s.endAll(errKilled, func(p *proc) bool {
		_, underway := s.procs[p.exec]
		return p.number > me.number && (p.exec == me.number || !underway)
	})
}

// endAll ends the processes that match, which is asked under mu, and waits
// until they have ended.
func (s *Sandbox) endAll(why error, match func(*proc) bool) {
	s.mu.Lock()
	var hit []*proc
	for _, p := range s.procs {
		if match(p) {
			hit = append(hit, p)
		}
	}
	s.mu.Unlock()
	for _, p := range hit {
		p.cancel(why)
	}
	for _, p := range hit {
		<-p.done
	}
}

// Processes is how many commands, and processes they left, are under way.
func (s *Sandbox) Processes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.procs)
}

// Mark notes how many processes there have been.
func (s *Sandbox) Mark(ctx context.Context) (sandbox.Mark, error) {
	var m sandbox.Mark
	err := s.do(ctx, &Call{Op: OpMark}, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		m = sandbox.Mark(s.id + "/" + strconv.Itoa(s.born))
		return nil
	})
	return m, err
}

// KillTree ends the handlers of all commands, and of what they left, that
// began after the mark.
func (s *Sandbox) KillTree(ctx context.Context, since sandbox.Mark, _ time.Duration) error {
	return s.do(ctx, &Call{Op: OpKillTree, Mark: since}, func() error {
		id, text, _ := strings.Cut(string(since), "/")
		born, err := strconv.Atoi(text)
		if err != nil || id != s.id {
			s.b.violate("killtree in sandbox %q with a mark that it never gave: %q", s.spec.Name, since)
			return fmt.Errorf("unknown mark %q", since)
		}
		s.shut(func(d *door) bool { return d.number > born })
		s.endAll(errKilled, func(p *proc) bool { return p.number > born })
		return nil
	})
}

// EndAll ends the handlers of all commands, and of what they left.
func (s *Sandbox) EndAll(ctx context.Context, _ time.Duration) error {
	return s.do(ctx, &Call{Op: OpEndAll}, func() error {
		s.shut(anyDoor)
		s.endAll(errKilled, func(*proc) bool { return true })
		return nil
	})
}

// StartServices does nothing: there are none.
func (s *Sandbox) StartServices(ctx context.Context) error {
	return s.do(ctx, &Call{Op: OpServices}, func() error { return nil })
}

// Upload unpacks a tar stream.
func (s *Sandbox) Upload(ctx context.Context, dir string, tar io.Reader) error {
	return s.do(ctx, &Call{Op: OpUpload, Path: dir}, func() error {
		s.absolute(OpUpload, dir)
		return s.files.unpack(dir, tar)
	})
}

// Download writes a tar stream.
func (s *Sandbox) Download(ctx context.Context, p string, tar io.Writer) error {
	return s.do(ctx, &Call{Op: OpDownload, Path: p}, func() error {
		s.absolute(OpDownload, p)
		return s.files.pack(p, tar)
	})
}

func (s *Sandbox) absolute(op Op, p string) {
	if !path.IsAbs(p) {
		s.b.violate("%s in sandbox %q of the relative path %q", op, s.spec.Name, p)
	}
}

// Reset ends all processes and brings the files back to Config.Files, or to
// those of the snapshot that the sandbox was forked from.
func (s *Sandbox) Reset(ctx context.Context) error {
	return s.do(ctx, &Call{Op: opReset}, func() error {
		s.shut(anyDoor)
		s.endAll(errKilled, func(*proc) bool { return true })
		s.files.close()
		if err := removeAll(filepath.Join(s.dir, "root")); err != nil {
			return err
		}
		return s.fill()
	})
}

// SetNetwork notes a policy, which nothing enforces.
func (s *Sandbox) SetNetwork(ctx context.Context, mode sandbox.NetworkMode, hosts []string) error {
	n := sandbox.Network{Mode: mode, Hosts: slices.Clone(hosts), Switchable: s.spec.Network.Switchable, Log: s.spec.Network.Log}
	return s.do(ctx, &Call{Op: OpNetwork, Network: n}, func() error {
		if !n.Switchable {
			s.b.violate("network of sandbox %q changed, which was not created with Network.Switchable", s.spec.Name)
			return sandbox.ErrUnsupported
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.net = n
		return nil
	})
}

func (s *Sandbox) network() sandbox.Network {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.net
}

// Stop ends all processes and leaves the files.
func (s *Sandbox) Stop(ctx context.Context) (hint string, err error) {
	err = s.do(ctx, &Call{Op: OpStop}, func() error {
		s.setState(stopped)
		s.shut(anyDoor)
		s.endAll(sandbox.ErrDestroyed, func(*proc) bool { return true })
		return nil
	})
	return "ls " + s.Path("/"), err
}

// Destroy ends all processes and removes the files.
func (s *Sandbox) Destroy(ctx context.Context) error {
	if ctx.Err() != nil {
		s.b.violate("destroy of sandbox %q with a context that has ended", s.spec.Name)
	}
	err := s.b.call(ctx, &Call{Op: OpDestroy, Sandbox: s.spec.Name}, s.remove)
	if err != nil {
		return fmt.Errorf("destroying sandbox %q: %w", s.spec.Name, err)
	}
	return nil
}

// remove can be called at any time and repeatedly.
func (s *Sandbox) remove() error {
	s.setState(destroyed)
	s.shut(anyDoor)
	s.endAll(sandbox.ErrDestroyed, func(*proc) bool { return true })
	s.files.close()
	if err := removeAll(s.dir); err != nil {
		return err
	}
	s.b.leave(s)
	return nil
}
