package guest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/procfs"
	"github.com/proctor-run/proctor/sandbox/internal/native"
	"github.com/proctor-run/proctor/sandbox/internal/ownkernel"
)

// groups is where gVisor's kernel shows control groups of version 2.
const groups = "/sys/fs/cgroup"

// shown are the options of what is shown below "/sys".
const shown = unix.MS_NOSUID | unix.MS_NOEXEC

// onOwnKernel is Main in a sandbox with a kernel of its own.
func onOwnKernel(stdin, stdout *os.File, stderr io.Writer, build, limits string) int {
	l, err := ownkernel.ParseLimits(limits)
	var pids *processLimit
	if err == nil {
		pids, err = settle(l)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "proctor guest: making the sandbox:", err)
		return 1
	}
	return supervise(stdin, stdout, stderr, build, bounds{memory: l.Memory, pids: pids})
}

// settle sets the limits in the sandbox's control group and leaves of all groups that
// one to be seen, read-only; it also shows the network devices. From then on nothing in the
// sandbox can mount, and only the limit of processes can be set, through what is returned.
func settle(l ownkernel.Limits) (*processLimit, error) {
	// Where something is mounted on /tmp it is not seen, and a read-only one would refuse.
	if _, err := os.Lstat(ownkernel.Placeholder); err == nil {
		if err := os.Remove(ownkernel.Placeholder); err != nil {
			return nil, err
		}
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	_, path, ok := strings.Cut(strings.TrimSpace(string(own)), "0::")
	if !ok {
		return nil, fmt.Errorf("the process is in no control group: %.200q", own)
	}
	group := filepath.Join(groups, filepath.Clean("/"+path))
	for _, f := range []struct {
		name, value string
		wanted      bool
	}{
		{"pids.max", strconv.FormatInt(l.PIDs, 10), l.PIDs > 0},
		{"memory.max", strconv.FormatInt(l.Memory, 10), l.Memory > 0},
		{"cpu.max", fmt.Sprintf("%d %d", l.CPUQuota, l.CPUPeriod), l.CPUQuota > 0},
	} {
		if !f.wanted {
			continue
		}
		if err := writeFile(filepath.Join(group, f.name), f.value, 0); err != nil {
			return nil, fmt.Errorf("setting a limit: %w", err)
		}
	}
	pids, err := os.OpenFile(filepath.Join(group, "pids.max"), os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a limit: %w", err)
	}
	if err := unix.Mount(group, groups, "", unix.MS_BIND, ""); err != nil {
		return nil, fmt.Errorf("showing the sandbox's control group: %w", err)
	}
	if err := unix.Mount("", groups, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|shown, ""); err != nil {
		return nil, fmt.Errorf("protecting the sandbox's control group: %w", err)
	}
	if err := showNetDevices(); err != nil {
		return nil, err
	}
	return &processLimit{file: pids, most: l.PIDs}, native.Drop(unix.CAP_SYS_ADMIN)
}

// processLimit bounds how many processes there are, in a kernel of the sandbox's own. Nil
// does nothing.
type processLimit struct {
	file *os.File
	most int64 // 0 is no limit
}

// none lets no process be made. There the kernel does not stop all processes in one step,
// so that who forks all the time has a child that is not stopped.
func (p *processLimit) none() error { return p.set("0") }

// again lets processes be made as before.
func (p *processLimit) again() error {
	if p == nil || p.most <= 0 {
		return p.set("max")
	}
	return p.set(strconv.FormatInt(p.most, 10))
}

func (p *processLimit) set(text string) error {
	if p == nil {
		return nil
	}
	if _, err := p.file.WriteAt([]byte(text), 0); err != nil {
		return fmt.Errorf("setting the limit of processes: %w", err)
	}
	return nil
}

// boundMemory ends commands whenever there is more in memory than there may be, as a
// kernel would. Here no kernel does: the one outside knows of no process of the
// sandbox, and gVisor's does not enforce such limits.
func (s *server) boundMemory(limit int64) error {
	if limit <= 0 {
		return nil
	}
	u := usage{proc: s.proc}
	var err error
	if u.tasks, err = os.Open(groups + "/pids.current"); err != nil { // before a command can mount something over it
		return fmt.Errorf("bounding memory: %w", err)
	}
	if u.supervisor, err = u.memory(); err != nil {
		return fmt.Errorf("bounding memory: %w", err)
	}
	go s.watchMemory(u, limit) // until the process ends
	return nil
}

// usage reads what gVisor's kernel says of what the sandbox uses.
type usage struct {
	proc  *procDir
	tasks *os.File
	// supervisor is how many bytes were in use before any command.
	supervisor int64
}

// memory is how many bytes are in use that were not read from files, as files are read
// again: that the group counts them too is not how much a sandbox needs.
func (u usage) memory() (int64, error) {
	text, err := u.proc.read("meminfo", make([]byte, 4096))
	if err != nil {
		return 0, err
	}
	kib, err := procfs.ParseAnonPages(text)
	return kib << 10, err
}

// bytes are in use: the commands', and what gVisor needs for them that it is not given.
func (u usage) bytes() (int64, error) {
	used, err := u.memory()
	if err != nil {
		return 0, err
	}
	tasks, err := readCount(u.tasks)
	return max(used-u.supervisor, 0) + max(tasks-ownkernel.Tasks, 0)*ownkernel.TaskMemory, err
}

const (
	// fastest is how much memory commands may fill in a second, so that it is looked
	// at it before they have filled what is left.
	fastest = 4 << 30
	// soonest and latest bound how long it is not looked at.
	soonest, latest = 5 * time.Millisecond, 250 * time.Millisecond
	// freeing is how long it takes until memory of who has ended is not counted any more,
	// and dying how long they are waited for.
	freeing, dying = 20 * time.Millisecond, 250 * time.Millisecond
)

// pauseBefore is how long it takes at least to fill what is left.
func pauseBefore(left int64) time.Duration {
	filled := time.Duration(float64(left) / fastest * float64(time.Second))
	return min(max(filled, soonest), latest)
}

func (s *server) watchMemory(u usage, limit int64) {
	for {
		used, err := u.bytes()
		if err != nil {
			return // the kernel is about to end
		}
		if used <= limit {
			time.Sleep(pauseBefore(limit - used))
			continue
		}
		killed := s.free(used - limit)
		for patience := dying; patience > 0 && s.anyAlive(killed); patience -= soonest {
			time.Sleep(soonest)
		}
		time.Sleep(freeing)
	}
}

func readCount(f *os.File) (int64, error) {
	buf := make([]byte, 32)
	n, err := f.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("reading a number: %w", err)
	}
	count, err := strconv.ParseInt(strings.TrimSpace(string(buf[:n])), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading a number: %w", err)
	}
	return count, nil
}

// free ends the processes with the most memory besides the supervisor, until those
// that it has ended had that many bytes together. It returns those.
func (s *server) free(bytes int64) []holder {
	all := s.holders()
	slices.SortFunc(all, func(a, b holder) int { return cmp.Compare(b.bytes, a.bytes) })
	for i, h := range all {
		if bytes <= 0 {
			return all[:i]
		}
		_ = unix.Kill(h.pid, unix.SIGKILL) // an error means that it has ended
		bytes -= h.bytes
	}
	return all
}

func (s *server) anyAlive(some []holder) bool {
	buf := make([]byte, 4096)
	return slices.ContainsFunc(some, func(h holder) bool {
		p, err := s.proc.stat(h.pid, buf)
		return err == nil && !p.dead()
	})
}

// holder is a process that holds memory.
type holder struct {
	pid   int
	bytes int64
}

func (s *server) holders() []holder {
	names, _, err := s.proc.names()
	if err != nil {
		return nil
	}
	var all []holder
	buf := make([]byte, 256)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == s.self {
			continue
		}
		text, err := s.proc.read(name+"/statm", buf)
		fields := strings.Fields(string(text))
		if err != nil || len(fields) < 2 {
			continue // it has ended
		}
		if pages, err := strconv.ParseInt(fields[1], 10, 64); err == nil && pages > 0 {
			all = append(all, holder{pid, pages * int64(os.Getpagesize())})
		}
	}
	return all
}
