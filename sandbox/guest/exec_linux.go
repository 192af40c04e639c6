package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

// defaultPath is set where neither image nor Spec nor Command have a PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// execution is one command.
type execution struct {
	call   *service
	status chan int // the exit code, once

	// Guarded by server.mu.
	root    key           // the command's own process
	started bool          // root is set
	exited  bool          // reaped
	killed  chan struct{} // nil until a kill began; closed when it is over
	proof   error         // of the kill: why it could not be proven
}

func newExecution(c *service) *execution {
	return &execution{call: c, status: make(chan int, 1)}
}

// refusal is why a command was not started, as an exit code and a line of text.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

// errEndedEarly says that a command was ended before it was started.
var errEndedEarly = errors.New("ended before the start")

func refuse(code int, format string, args ...any) error {
	return &refusal{code: code, text: fmt.Sprintf(format, args...)}
}

// exec runs a command to its end.
func (s *server) exec(e *execution, q execRequest) reply {
	pipes, err := openStdio(q)
	if err != nil {
		return replyOf(fmt.Errorf("making pipes: %w", err))
	}
	err = s.spawn(e, q, pipes.child)
	pipes.closeChild()
	if err != nil {
		pipes.closeOwn()
		return s.notStarted(e, q, err)
	}
	if pipes.stdin != nil {
		go s.feed(e.call, pipes.stdin) // ends with the call
	}
	var pumps sync.WaitGroup
	for typ, pipe := range map[frames.Type]*os.File{repStdout: pipes.stdout, repStderr: pipes.stderr} {
		if pipe != nil {
			pumps.Go(func() { s.pump(e.call, typ, pipe) })
		}
	}
	code := <-e.status
	pipes.interrupt()
	pumps.Wait()
	return s.ended(e, code)
}

// notStarted is the reply for a command that spawn has not started.
func (s *server) notStarted(e *execution, q execRequest, err error) reply {
	var r *refusal
	switch {
	case errors.Is(err, errEndedEarly):
		return s.ended(e, 128+int(syscall.SIGTERM))
	case errors.As(err, &r):
		s.tell(e.call, q, "proctor: "+r.text+"\n")
		return reply{code: r.code, message: r.text}
	default:
		return replyOf(err)
	}
}

// ended waits for a kill under way, so that the reply comes after the proof.
func (s *server) ended(e *execution, code int) reply {
	s.mu.Lock()
	killed := e.killed
	s.mu.Unlock()
	if killed == nil {
		return reply{code: code}
	}
	<-killed
	r := replyOf(e.proof)
	r.code, r.killed = code, true
	return r
}

// tell writes a line where the command's own errors would go.
func (s *server) tell(c *service, q execRequest, text string) {
	typ := repStderr
	switch {
	case q.merged:
		typ = repStdout
	case !q.stderr:
		return
	}
	text = text[:min(len(text), maxMessage)]
	if n := c.credit.Take(len(text), nil, nil); n == len(text) {
		_ = s.w.Send(typ, c.id, []byte(text))
	}
}

// spawn starts the command's process. Errors that are the command's own are a
// *refusal.
func (s *server) spawn(e *execution, q execRequest, files []uintptr) error {
	who, err := resolveUser(q.user, openFile)
	if err != nil {
		return refuse(codeNotRunnable, "%v", err)
	}
	dir := q.dir
	if dir == "" {
		dir = "/"
	}
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return refuse(codeNotRunnable, "working directory %q: %v", dir, orNotDir(err))
	}
	env := environment(q.env, who.home)
	path, err := lookUp(q.argv[0], dir, env)
	if err != nil {
		return err
	}
	attr := &syscall.ProcAttr{
		Dir: dir, Env: env, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true, Credential: s.credential(who)},
	}
	s.births.RLock()
	defer s.births.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.killed != nil {
		return errEndedEarly
	}
	brand(e.call.id)
	var pid int
	start := func() { pid, err = s.forkExec(path, q.argv, attr) }
	if q.powerless {
		if err := s.powerless.do(start); err != nil {
			return err
		}
	} else {
		start()
	}
	if err != nil {
		return startError(q.argv[0], err)
	}
	p, err := s.proc.stat(pid, make([]byte, 4096)) // it is not reaped yet
	if err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return fmt.Errorf("starting %q: %w", q.argv[0], err)
	}
	e.root, e.started = p.key(), true
	s.byPID[pid] = e
	return nil
}

func openFile(name string) (io.ReadCloser, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // not hanging in a pipe
	if err != nil {
		return nil, err
	}
	return f, nil
}

func orNotDir(err error) error {
	if err == nil {
		return syscall.ENOTDIR
	}
	return errors.Unwrap(err)
}

// startError tells what concerns the command from what concerns the sandbox.
func startError(name string, err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		switch errno {
		case syscall.ENOENT:
			return refuse(codeNotFound, "%s: %v", name, errno)
		case syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE:
		default:
			return refuse(codeNotRunnable, "%s: %v", name, errno)
		}
	}
	return fmt.Errorf("starting %q: %w", name, err)
}

// credential is nil for the supervisor's own user when it cannot change users
// anyway.
func (s *server) credential(who account) *syscall.Credential {
	if os.Geteuid() != 0 && int(who.uid) == os.Geteuid() && int(who.gid) == os.Getegid() {
		return nil
	}
	c := &syscall.Credential{Uid: who.uid, Gid: who.gid, Groups: who.groups}
	// In a user namespace with one mapped group, groups cannot be set.
	text, err := s.proc.read("self/setgroups", make([]byte, 16))
	c.NoSetGroups = err == nil && strings.HasPrefix(string(text), "deny")
	return c
}

// environment lets later entries win and adds PATH and HOME.
func environment(env []string, home string) []string {
	at := map[string]int{}
	out := make([]string, 0, len(env)+2)
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" || strings.ContainsRune(kv, 0) {
			continue
		}
		if i, seen := at[name]; seen {
			out[i] = kv
			continue
		}
		at[name] = len(out)
		out = append(out, kv)
	}
	if _, seen := at["PATH"]; !seen {
		out = append(out, "PATH="+defaultPath)
	}
	if _, seen := at["HOME"]; !seen {
		out = append(out, "HOME="+home)
	}
	return out
}

// lookUp finds a program as execvp does, along the command's own PATH.
func lookUp(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil // execve says what is wrong with it
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	denied := false
	for _, d := range filepath.SplitList(path) {
		file := filepath.Join(d, name)
		if !filepath.IsAbs(d) {
			file = filepath.Join(dir, d, name)
		}
		fi, err := os.Stat(file)
		switch {
		case err != nil || name == "" || fi.IsDir():
		case fi.Mode()&0o111 == 0:
			denied = true
		default:
			return file, nil
		}
	}
	if denied {
		return "", refuse(codeNotRunnable, "%s: permission denied", name)
	}
	return "", refuse(codeNotFound, "%s: command not found", name)
}

// feed writes standard input into the command's pipe. When nobody reads it
// any more the client is not granted more, and stops.
func (s *server) feed(c *service, pipe *os.File) {
	defer func() { _ = pipe.Close() }()
	for {
		f, ok := c.in.Pop(c.canceled, nil)
		if !ok || f.Type == reqDataEnd {
			return
		}
		_, err := pipe.Write(f.Payload)
		s.bufs.Put(f.Payload)
		if err != nil {
			return
		}
		if n := c.in.Consumed(len(f.Payload)); n > 0 {
			_ = s.w.SendCredit(repCredit, c.id, n)
		}
	}
}

// pump sends a pipe's content until it ends or interrupt is called. Then it
// sends what the pipe still holds: that was written before the command's end.
// What others write later is read and dropped, so that they can go on.
func (s *server) pump(c *service, typ frames.Type, pipe *os.File) {
	buf := frames.NewPacket(frames.MaxData)
	send := func(most int, read func([]byte) (int, error)) (int, error) {
		n := c.credit.Take(most, nil, nil)
		m, err := read(buf.Space(n))
		if m <= 0 {
			c.credit.GiveBack(n + frames.Cost)
			return 0, err
		}
		c.credit.GiveBack(n - m)
		return m, errors.Join(err, s.w.SendPacket(typ, c.id, buf, m))
	}
	for {
		_, err := send(frames.MaxData, pipe.Read)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			_ = pipe.Close()
			return
		}
	}
	_ = pipe.SetReadDeadline(time.Time{})
	raw, err := pipe.SyscallConn()
	for left := unread(raw); err == nil && left > 0; {
		var n int
		n, err = send(min(left, frames.MaxData), func(p []byte) (int, error) { return readNow(raw, p) })
		left -= n
	}
	go func() { // ends with the last process that holds the pipe
		_, _ = io.Copy(io.Discard, pipe)
		_ = pipe.Close()
	}()
}

// unread is how many bytes a pipe holds.
func unread(raw syscall.RawConn) int {
	n := 0
	if raw == nil || raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }) != nil {
		return 0
	}
	return n
}

// readNow reads without waiting.
func readNow(raw syscall.RawConn, p []byte) (n int, err error) {
	if e := raw.Read(func(fd uintptr) bool {
		n, err = unix.Read(int(fd), p)
		return true
	}); e != nil {
		return 0, fmt.Errorf("reading what a pipe holds: %w", e)
	}
	if n <= 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// brand sets an inherited, harmless attribute by which descendants of a command
// are known when nothing else connects them to it any more: the soft limit of
// the resident set, which no kernel since 2.4 enforces. It is set on the
// supervisor itself, under the lock under which it forks.
func brand(id uint32) {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_RSS, &lim) == nil {
		lim.Cur = brandOf(id)
		_ = unix.Setrlimit(unix.RLIMIT_RSS, &lim) // without it, descent has to do
	}
}

// brandOf is far beyond any memory and a multiple of the page size.
func brandOf(id uint32) uint64 { return 1<<62 | uint64(id)<<12 }
