package guest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/procfs"
)

// process is what /proc/PID/stat says.
type process struct {
	pid, ppid, pgid, sid int
	threads              int
	state                byte
	start                uint64 // clock ticks since boot; with pid the order of birth
	rss                  uint64 // the soft limit RLIMIT_RSS, see brand
	name                 string // as it calls itself: it may hold anything
}

// key names one process for as long as the machine runs.
type key struct {
	pid   int
	start uint64
}

func (p process) key() key { return key{p.pid, p.start} }

// dead processes cannot run any more; they wait to be reaped. A leader that
// has exited before its threads is not dead.
func (p process) dead() bool {
	return p.state == 'X' || p.state == 'x' || (p.state == 'Z' && p.threads <= 1)
}

// bornSince reports whether p is q or younger. Process ids are given out in
// ascending order, which decides within one clock tick.
func (p process) bornSince(q key) bool {
	return p.start > q.start || (p.start == q.start && p.pid >= q.pid)
}

// procDir reads /proc through a descriptor that was opened at the start, so
// that nothing mounted over it later hides a process.
type procDir struct {
	dir *os.File
	// room is how many bytes of names a list of processes is asked for at a time.
	room atomic.Int64
}

const (
	firstRoom = 64 << 10
	mostRoom  = 4 << 20 // more than a kernel's most processes take
)

func openProc() (*procDir, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("opening /proc: %w", err)
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &st); err != nil || st.Type != unix.PROC_SUPER_MAGIC {
		return nil, errors.Join(errors.New("/proc is not a proc file system"), err, dir.Close())
	}
	p := &procDir{dir: dir}
	p.room.Store(firstRoom)
	return p, nil
}

// census is a list of the processes that there were, and what is needed to know
// whether another one was made without anything happening in between.
type census struct {
	procs []process
	// last is the process id that was given out last, before and after the
	// list was made; 0 where the kernel does not tell, -1 where there were births.
	last int
	// missed: some processes ended before they were looked at.
	missed bool
	// pieces: the list was made in several steps, between which anything can have happened.
	pieces bool
}

// scan lists the processes.
func (p *procDir) scan() (census, error) {
	c, _, err := p.scanUntil(nil)
	return c, err
}

// scanUntil lists the processes, unless enough comes before it has looked at all; then
// those that it has looked at, which are the oldest.
func (p *procDir) scanUntil(enough <-chan time.Time) (c census, all bool, err error) {
	before := p.lastPID()
	names, pieces, err := p.names()
	if err != nil {
		return c, false, fmt.Errorf("listing processes: %w", err)
	}
	c.pieces = pieces
	buf := make([]byte, 4096)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		select {
		case <-enough:
			return c, false, nil
		default:
		}
		ps, err := p.stat(pid, buf)
		switch {
		case err == nil:
			c.procs = append(c.procs, ps)
		case vanished(err):
			c.missed = true
		default:
			return c, false, err
		}
	}
	if c.last = before; p.lastPID() != before {
		c.last = -1
	}
	return c, true, nil
}

// names lists what is in /proc, and reports whether that took several steps.
func (p *procDir) names() (names []string, pieces bool, err error) {
	// A descriptor of its own: concurrent scans must not share an offset.
	fd, err := unix.Openat(int(p.dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, os.NewSyscallError("openat", err)
	}
	defer func() { _ = unix.Close(fd) }()
	buf := make([]byte, p.room.Load())
	for steps := 0; ; steps++ {
		n, err := unix.Getdents(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, false, os.NewSyscallError("getdents", err)
		}
		if n == 0 {
			return names, steps > 1, nil
		}
		if steps == 1 { // the next list is to be made in one
			p.room.Store(min(2*int64(len(buf)), mostRoom))
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// still reports whether nothing was born and nothing has ended from before an
// earlier census until after this one. Then whoever lives after this one is in
// it: who is not was being forked already before the earlier one, by a parent
// that lived through all of that, and who was listed there alive. Where the
// kernel does not tell what it gave out last, which is gVisor, a list that is asked
// for in one step shows one moment: it is made under the lock that a birth needs. A
// process that is not in this one has a parent that is, and that the earlier one
// shows to have been alive.
func (c *census) still(earlier *census) bool {
	if earlier == nil || c.last < 0 || c.last != earlier.last || c.missed || c.last == 0 && (c.pieces || earlier.pieces) || len(c.procs) != len(earlier.procs) {
		return false
	}
	dead := make(map[key]bool, len(earlier.procs))
	for _, p := range earlier.procs {
		dead[p.key()] = p.dead()
	}
	for _, p := range c.procs {
		if was, ok := dead[p.key()]; !ok || was != p.dead() {
			return false
		}
	}
	return true
}

func vanished(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }

// stat reads one process.
func (p *procDir) stat(pid int, buf []byte) (process, error) {
	text, err := p.read(strconv.Itoa(pid)+"/stat", buf)
	if err != nil {
		return process{}, fmt.Errorf("reading process %d: %w", pid, err)
	}
	st, err := procfs.ParseStat(text)
	if err != nil {
		return process{}, err
	}
	return process{
		pid: pid, ppid: st.PPID, pgid: st.PGID, sid: st.SID, threads: st.Threads,
		state: st.State, start: st.Start, rss: st.RSSLimit, name: st.Name,
	}, nil
}

// lastPID is the id that was given out last, 0 where that is not known.
func (p *procDir) lastPID() int {
	text, err := p.read("loadavg", make([]byte, 128))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(fields[len(fields)-1])
	return n
}

func (p *procDir) read(name string, buf []byte) ([]byte, error) {
	fd, err := unix.Openat(int(p.dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("openat", err)
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("read", err)
		}
		return buf[:n], nil
	}
}
