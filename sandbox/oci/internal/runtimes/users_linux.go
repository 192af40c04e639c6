package runtimes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
)

// HostRoot reports whether the caller is root, and not just in a user namespace
// whose root it is: there overlays and devices are as for ordinary users.
func HostRoot() bool {
	fields := strings.Fields(hostfile.Small("/proc/self/uid_map"))
	initial := len(fields) == 0 || len(fields) == 3 && fields[0] == "0" && fields[1] == "0" && fields[2] == "4294967295"
	return os.Geteuid() == 0 && initial
}

// idRange is a range of user or group ids of the host.
type idRange struct{ first, count int }

// Users says how the users of a sandbox's user namespace are mapped to the
// host's. The caller is root in it. With ranges there are other users too, as
// far as subuid(5) and subgid(5) give the caller any.
type Users struct {
	uid, gid               int
	uids, gids             idRange // of users from 1 on; count 0 means none
	newuidmap, newgidmap   string
	helperEnd, callersSide *os.File // the helper waits for a byte that says that it is mapped
	devices                *deviceSocket
}

// CallerUsers makes the map for the calling user; ranges false means that the
// caller is the only user.
func CallerUsers(ranges bool) *Users {
	m := &Users{uid: os.Geteuid(), gid: os.Getegid()}
	if !ranges {
		return m
	}
	uidProgram, uidErr := exec.LookPath("newuidmap")
	gidProgram, gidErr := exec.LookPath("newgidmap")
	uids, gids := subordinate("/etc/subuid", m.uid), subordinate("/etc/subgid", m.uid)
	if uidErr == nil && gidErr == nil && uids.count > 0 && gids.count > 0 {
		m.newuidmap, m.newgidmap, m.uids, m.gids = uidProgram, gidProgram, uids, gids
	}
	return m
}

// Ranged reports whether there are other users than root.
func (m *Users) Ranged() bool { return m.uids.count > 0 }

// subordinate returns the largest range that the file gives to the user, at
// most as many ids as there are on one system.
func subordinate(file string, uid int) idRange {
	f, err := os.Open(file)
	if err != nil {
		return idRange{}
	}
	defer func() { _ = f.Close() }()
	names := []string{strconv.Itoa(uid)}
	if u, err := user.LookupId(names[0]); err == nil {
		names = append(names, u.Username)
	}
	var best idRange
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if r, ok := parseSubordinate(lines.Text(), names); ok && r.count > best.count {
			best = r
		}
	}
	best.count = min(best.count, 1<<16-1)
	return best
}

// parseSubordinate reads a line "name:first:count".
func parseSubordinate(line string, names []string) (idRange, bool) {
	fields := strings.Split(strings.TrimSpace(line), ":")
	if len(fields) != 3 {
		return idRange{}, false
	}
	first, err1 := strconv.ParseUint(fields[1], 10, 31)
	count, err2 := strconv.ParseUint(fields[2], 10, 31)
	if err1 != nil || err2 != nil {
		return idRange{}, false
	}
	for _, n := range names {
		if fields[0] == n {
			return idRange{int(first), int(count)}, true
		}
	}
	return idRange{}, false
}

// prepare makes cmd start in new user and mount namespaces.
func (m *Users) prepare(cmd *exec.Cmd) error {
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	m.users(cmd.SysProcAttr)
	if !m.Ranged() {
		return nil
	}
	var err error
	if m.helperEnd, m.callersSide, err = os.Pipe(); err != nil {
		return fmt.Errorf("making a pipe for the user namespace: %w", err)
	}
	cmd.ExtraFiles = []*os.File{m.helperEnd}
	cmd.Args = append(cmd.Args, waitForMap)
	return nil
}

// users maps the caller, as far as that can be done before the start.
func (m *Users) users(attr *syscall.SysProcAttr) {
	if !m.Ranged() {
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: m.uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: m.gid, Size: 1}}
		return
	}
	// Nobody is mapped when the program is executed, and then only ambient
	// capabilities are kept.
	for c := uintptr(0); c <= lastCapability(); c++ {
		attr.AmbientCaps = append(attr.AmbientCaps, c)
	}
}

func lastCapability() uintptr {
	data, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if n, convErr := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && convErr == nil {
		return uintptr(n)
	}
	return unix.CAP_LAST_CAP
}

// ErrMapping says that the programs that map ranges do not work here.
var ErrMapping = errors.New("mapping the subordinate ids")

// apply maps the ids of a started helper and lets it continue.
func (m *Users) apply(cmd *exec.Cmd) error {
	if !m.Ranged() {
		return nil
	}
	defer func() { _ = m.callersSide.Close() }()
	_ = m.helperEnd.Close()
	if err := m.mapRanges(cmd.Process.Pid); err != nil {
		return err
	}
	if _, err := m.callersSide.Write([]byte{0}); err != nil {
		return fmt.Errorf("starting the helper: %w", err)
	}
	return nil
}

// mapRanges maps the ids of a started process that has none yet.
func (m *Users) mapRanges(pid int) error {
	if !m.Ranged() {
		return nil
	}
	for program, args := range map[string][]string{
		m.newuidmap: m.arguments(pid, m.uid, m.uids),
		m.newgidmap: m.arguments(pid, m.gid, m.gids),
	} {
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s %s: %w: %s", ErrMapping, program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

func (m *Users) arguments(pid, id int, r idRange) []string {
	var args []string
	for _, n := range []int{pid, 0, id, 1, 1, r.first, r.count} {
		args = append(args, strconv.Itoa(n))
	}
	return args
}

// RemoveTree removes the directory of a sandbox as root of a user namespace, which may
// hold files of other users. Executable is the running program, which must call Reexec.
func (m *Users) RemoveTree(ctx context.Context, executable, dir string) error {
	cmd := exec.CommandContext(ctx, executable)
	cmd.Args, cmd.Env = []string{removeArg0, dir}, runtimeEnv()
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if err := m.prepare(cmd); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("removing %q: %w", dir, err)
	}
	if err := m.apply(cmd); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("removing %q: %w: %s", dir, err, strings.TrimSpace(said.String()))
	}
	return nil
}
