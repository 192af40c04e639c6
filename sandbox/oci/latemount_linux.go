package oci

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
)

// mountLate makes mounts in the mount namespace of a sandbox in which no command
// has run. It is done by a thread that enters the namespace and is not used
// again; paths mean there what they mean in the sandbox.
func (s *Sandbox) mountLate(mounts []sandbox.Mount) error {
	pid, err := s.firstPID()
	if err != nil {
		return err
	}
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if err != nil {
		return fmt.Errorf("opening the sandbox's mount namespace: %w", err)
	}
	defer func() { _ = namespace.Close() }()
	trees := make([]int, 0, len(mounts))
	defer func() {
		for _, fd := range trees {
			_ = unix.Close(fd)
		}
	}()
	for _, m := range mounts {
		fd, err := detachedTree(m)
		if err != nil {
			return fmt.Errorf("mounting %q: %w", m.Source, err)
		}
		trees = append(trees, fd)
	}
	done := make(chan error)
	go onOtherThread(func() {
		done <- inNamespace(int(namespace.Fd()), func() error {
			for i, m := range mounts {
				if err := attach(trees[i], m.Target); err != nil {
					return fmt.Errorf("mounting on %q: %w", m.Target, err)
				}
			}
			return nil
		})
	})
	return <-done
}

// onOtherThread does something on a thread that ends with it, and that is not the
// main one, which never ends and is what /proc/self shows.
func onOtherThread(do func()) {
	runtime.LockOSThread() // and not unlocked, so that the thread ends
	if unix.Gettid() != os.Getpid() {
		do()
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		onOtherThread(do)
	}()
	<-ended
	runtime.UnlockOSThread()
}

// firstPID is the pid of the sandbox's first process. The guest is connected, so
// that it is running and the pid means nothing else.
func (s *Sandbox) firstPID() (int, error) {
	if s.first == nil {
		return 0, errors.New("the kernel has no handle of the sandbox's first process")
	}
	info := hostfile.Small("/proc/self/fdinfo/" + strconv.Itoa(int(s.first.Fd())))
	return parsePidfd(info)
}

// detachedTree is a mount of the host with what is mounted below it, that is
// attached nowhere yet.
func detachedTree(m sandbox.Mount) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, m.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, &os.PathError{Op: "open_tree", Path: m.Source, Err: err}
	}
	var flags uintptr
	if m.ReadOnly {
		flags = unix.MS_RDONLY
	}
	if m.Guarded {
		flags |= unix.MS_NOSUID | unix.MS_NODEV
	}
	if err := rootfs.SetTree(fd, flags, unix.MS_PRIVATE); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// inNamespace does something with the calling thread in a mount namespace.
func inNamespace(fd int, do func() error) error {
	// The root and working directory are the thread's own from here on.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unsharing the root directory: %w", err)
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("entering the sandbox's mount namespace: %w", err)
	}
	return do()
}

// attach puts a tree on a path, which is created when it is missing.
func attach(tree int, target string) error {
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return &os.PathError{Op: "stat", Path: target, Err: err}
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
	} else if err := makeFile(target); err != nil {
		return err
	}
	flags := unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_SYMLINKS
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, target, flags); err != nil {
		return &os.PathError{Op: "move_mount", Path: target, Err: err}
	}
	return nil
}

func makeFile(name string) error {
	if err := os.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = f.Close() // nothing was written
	return nil
}

// parsePidfd reads the field Pid of a process file descriptor, pidfd_open(2).
func parsePidfd(info string) (int, error) {
	var pid int
	for line := range strings.Lines(info) {
		if _, err := fmt.Sscanf(line, "Pid:\t%d", &pid); err == nil && pid > 0 {
			return pid, nil
		}
	}
	return 0, errors.New("the sandbox's first process has ended")
}
