package native

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Init reads the Setup and carries it out. Afterwards the process is in the
// sandbox and has no more rights than its commands will, except to be spared
// when memory is short.
func Init() (Scores, error) {
	s, err := readSetup()
	if err != nil {
		return Scores{}, err
	}
	if s.Mapped {
		if err := afterMap(); err != nil {
			return Scores{}, err
		}
	}
	if err := keepDescriptors(); err != nil {
		return Scores{}, err
	}
	if err := boundOpenFiles(); err != nil {
		return Scores{}, err
	}
	scores, err := Spare()
	if err != nil {
		return Scores{}, err
	}
	return scores, s.carryOut(scores.keep)
}

func (s *Setup) carryOut(keep uint64) error {
	if err := hideGroups(); err != nil {
		return err
	}
	unix.Umask(0)
	if err := s.enter(); err != nil {
		return err
	}
	unix.Umask(0o022)
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if s.Loopback {
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("starting the loopback device: %w", err)
		}
	}
	// Without the privilege that goes next, filters need no-new-privileges,
	// which would break setuid programs.
	if err := setFilter(s.Filter); err != nil {
		return fmt.Errorf("refusing system calls: %w", err)
	}
	return s.drop(keep)
}

// afterMap makes up for what was not possible before the users were mapped.
func afterMap() error {
	// The change of credentials has undone it.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("asking for a signal at the parent's death: %w", err)
	}
	// The caller's other groups would open its files to the sandbox.
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("dropping the caller's groups: %w", err)
	}
	return nil
}

// hideGroups makes the control groups that the process is in the uppermost ones that
// can be seen (cgroup_namespaces(7)). Whoever started it was in others.
func hideGroups() error {
	if err := allThreads(unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP, 0, 0); err != nil {
		return fmt.Errorf("making a namespace of control groups: %w", err)
	}
	return nil
}

// keepDescriptors keeps what the program outside has left open by accident, from
// whoever started it, from commands.
func keepDescriptors() error {
	err := unix.CloseRange(SetupFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	list, err := os.ReadDir("/proc/self/fd") // Linux before 5.11
	if err != nil {
		return fmt.Errorf("listing open files: %w", err)
	}
	for _, d := range list {
		if fd, err := strconv.Atoi(d.Name()); err == nil && fd >= SetupFD {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// boundOpenFiles sets how many files each process of the sandbox may have open.
func boundOpenFiles() error {
	own, err := openFiles()
	if err != nil {
		return err
	}
	err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: OpenFiles, Max: OpenFiles})
	if errors.Is(err, syscall.EPERM) {
		err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: own, Max: own})
	}
	if err != nil {
		return fmt.Errorf("setting the limit of open files: %w", err)
	}
	return nil
}

// openFiles is how many files the process may have open itself, at most OpenFiles.
func openFiles() (uint64, error) {
	var own syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &own); err != nil {
		return 0, fmt.Errorf("reading the limit of open files: %w", err)
	}
	return min(own.Max, OpenFiles), nil
}

// MostOpenFiles is how many files the process may let others have open: OpenFiles, or as
// many as it may have itself if it is not root of the machine or may not set more.
func MostOpenFiles(root bool) (uint64, error) {
	have, err := permitted()
	if err != nil {
		return 0, err
	}
	if root && have&(1<<unix.CAP_SYS_RESOURCE) != 0 {
		return OpenFiles, nil
	}
	return openFiles()
}

// loopbackUp is "ip link set lo up" (netdevice(7)).
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making a socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("naming the device: %w", err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("setting its flags: %w", err)
	}
	return nil
}

// setFilter installs the program for all threads of the process.
func setFilter(filter []Instruction) error {
	if len(filter) == 0 {
		return nil
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))) //nolint:gosec // the call's argument
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}
