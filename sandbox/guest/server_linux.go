package guest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

// supervise is Main.
func supervise(stdin, stdout *os.File, stderr io.Writer, build string, b bounds) int {
	frames.Widen(stdin)
	frames.Widen(stdout)
	s, err := newServer(stdout)
	if err == nil {
		s.pids = b.pids
		err = s.boundMemory(b.memory)
	}
	if err == nil {
		err = s.guardMemory(b.scores)
	}
	if err == nil {
		err = s.serve(stdin, stdout, build)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		_, _ = fmt.Fprintln(stderr, "proctor guest:", err)
		return 1
	}
	return 0
}

// server is the state of the supervisor.
type server struct {
	w        *frames.Writer
	bufs     frames.Pool
	proc     *procDir
	self     int
	started  uint64 // the start time of self
	init     bool   // process 1: all processes are ours
	children chan os.Signal

	oom                    *os.File // its own oom_score_adj; nil for one that commands have too
	ownScore, commandScore []byte

	pids      *processLimit
	births    sync.RWMutex // locked while no process may be made; taken before mu
	powerless powerless    // guarded by mu

	mu       sync.Mutex
	calls    map[uint32]*service
	byPID    map[int]*execution // not reaped yet
	marks    map[string]map[key]bool
	markIDs  []string // oldest first
	lastMark int
}

// service is the inner side of one call.
type service struct {
	id       uint32
	in       *frames.Inbox  // standard input or a tar
	credit   *frames.Credit // for output or a tar
	canceled chan struct{}
	once     sync.Once // closes canceled
	exec     *execution
}

func (c *service) cancel() { c.once.Do(func() { close(c.canceled) }) }

func (c *service) isCanceled() bool {
	select {
	case <-c.canceled:
		return true
	default:
		return false
	}
}

func newServer(stdout *os.File) (*server, error) {
	s := &server{
		w: frames.NewWriter(stdout), self: os.Getpid(), children: make(chan os.Signal, 1),
		calls: map[uint32]*service{}, byPID: map[int]*execution{}, marks: map[string]map[key]bool{},
	}
	s.init = s.self == 1
	if err := holdSignals(s.children); err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil && !s.init {
		return nil, fmt.Errorf("becoming the reaper of descendants: %w", err)
	}
	if s.init || os.Geteuid() == 0 {
		// Commands that run as the same user must not trace the supervisor,
		// nor reach its memory, descriptors and program through /proc.
		hide()
	}
	var err error
	if s.proc, err = openProc(); err != nil {
		return nil, err
	}
	own, err := s.proc.stat(s.self, make([]byte, 4096))
	s.started = own.start
	return s, err
}

func (s *server) serve(stdin io.Reader, stdout io.Writer, build string) error {
	defer s.killAll()
	own := greetingOf(build)
	if _, err := stdout.Write(own.Encode()); err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	theirs, err := frames.ReadGreeting(stdin, magic)
	if err == nil {
		err = checkGreeting(own, theirs)
	}
	if err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	go s.reap() // until the process ends
	if s.init {
		go reserveThreads() // soon over
	}
	r := bufio.NewReaderSize(stdin, frames.MaxData)
	for {
		f, err := frames.Read(r, &s.bufs, requestLimit)
		if err == nil {
			err = s.dispatch(f)
		}
		if err != nil {
			return err
		}
	}
}

// dispatch never waits: what takes time gets a goroutine, which lives as long
// as its call.
func (s *server) dispatch(f frames.Frame) error {
	s.mu.Lock()
	c := s.calls[f.ID]
	s.mu.Unlock()
	switch f.Type {
	case reqExec, reqMark, reqKillTree, reqUpload, reqDownload, reqProcesses, reqOwn:
		if c != nil {
			return fmt.Errorf("%w: call %d is begun twice", frames.ErrProtocol, f.ID)
		}
		return s.start(f)
	case reqPing:
		go func() { _ = s.w.Send(repPong, f.ID, nil) }() // a broken pipe ends serve as well
		return nil
	}
	if c == nil {
		return nil // of a call that is over
	}
	switch f.Type {
	case reqData:
		return c.in.Push(f)
	case reqDataEnd:
		c.in.End(f)
	case reqCredit:
		n, err := frames.CreditOf(f.Payload)
		if err != nil {
			return err
		}
		return c.credit.Add(n)
	case reqCancel:
		c.cancel()
	case reqKill:
		q, err := decodeKillRequest(f.Payload)
		if err != nil {
			return err
		}
		s.killExec(c, q.grace)
	default:
		return fmt.Errorf("%w: unknown frame of type %d", frames.ErrProtocol, f.Type)
	}
	return nil
}

// start begins a call. Requests are decoded here, so that a malformed one ends
// the connection.
func (s *server) start(f frames.Frame) error {
	c := &service{
		id: f.ID, in: frames.NewInbox(windowOf(f.Type)), credit: frames.NewCredit(windowOf(f.Type)),
		canceled: make(chan struct{}),
	}
	var work func() reply
	switch f.Type {
	case reqExec:
		q, err := decodeExecRequest(f.Payload)
		if err != nil {
			return err
		}
		c.exec = newExecution(c)
		work = func() reply { return s.exec(c.exec, q) }
	case reqMark:
		work = s.mark
	case reqProcesses:
		work = func() reply { return replyOf(s.processes(c)) }
	case reqKillTree:
		q, err := decodeKillRequest(f.Payload)
		if err != nil {
			return err
		}
		work = func() reply { return s.killTree(c, q) }
	case reqOwn:
		q, err := decodeOwnRequest(f.Payload)
		if err != nil {
			return err
		}
		work = func() reply { return replyOf(give(c, q)) }
	case reqUpload:
		work = func() reply { return replyOf(s.upload(c, string(f.Payload))) }
	case reqDownload:
		work = func() reply { return replyOf(s.download(c, string(f.Payload))) }
	}
	s.mu.Lock()
	s.calls[c.id] = c
	s.mu.Unlock()
	go func() {
		r := work()
		c.cancel()
		s.mu.Lock()
		delete(s.calls, c.id)
		s.mu.Unlock()
		_ = s.w.Send(repDone, c.id, r.encode()) // a broken pipe ends serve as well
	}()
	return nil
}

// errCanceled ends work that the client has given up.
var errCanceled = errors.New("canceled")

// replyOf is the reply of work that has no result but an error.
func replyOf(err error) reply {
	switch {
	case err == nil:
		return reply{}
	case errors.Is(err, errCanceled):
		return reply{failure: failCanceled, message: err.Error()}
	case errors.Is(err, errMissing):
		return reply{failure: failNotExist, message: err.Error()}
	default:
		return reply{failure: failOther, message: err.Error()}
	}
}
