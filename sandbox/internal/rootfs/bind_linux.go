package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/internal/mountinfo"
)

// Bound is a file or directory of the host, with all that is mounted below it, which
// is shown at another place with restrictions that hold below it too.
type Bound struct {
	Source string `json:"source"`
	At     string `json:"at"` // made where it is missing
	// Flags of mount(2): MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC.
	Flags uintptr `json:"flags"`
}

// Show makes the mount.
func (b Bound) Show() error {
	info, err := os.Stat(b.Source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(b.At, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(b.At), 0o755); err == nil {
		err = os.WriteFile(b.At, nil, 0o644)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(b.Source, b.At, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("binding %q: %w", b.Source, err)
	}
	fd, err := unix.Open(b.At, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: b.At, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	return Restrict(fd, b.Flags)
}

// attributes are the words of mount_setattr(2) for flags of mount(2).
var attributes = map[uintptr]uint64{
	unix.MS_RDONLY: unix.MOUNT_ATTR_RDONLY, unix.MS_NOSUID: unix.MOUNT_ATTR_NOSUID,
	unix.MS_NODEV: unix.MOUNT_ATTR_NODEV, unix.MS_NOEXEC: unix.MOUNT_ATTR_NOEXEC,
}

// SetTree gives flags of mount(2), and a propagation unless it is 0, to the mount that
// a descriptor names and to all mounts below it. It needs Linux 5.12.
func SetTree(fd int, flags uintptr, propagation uint64) error {
	attr := unix.MountAttr{Propagation: propagation}
	for flag, word := range attributes {
		if flags&flag != 0 {
			attr.Attr_set |= word
		}
	}
	return os.NewSyscallError("mount_setattr", unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr))
}

// Restrict adds flags to the mount that a descriptor names and to all mounts below it.
// Those that they have stay: in a user namespace they must. The mount is in the
// caller's namespace, and nothing else changes mounts below it.
func Restrict(fd int, flags uintptr) error {
	err := SetTree(fd, flags, 0)
	// Filters of system calls that do not know the call refuse it as forbidden.
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return err
	}
	return restrictEach(fd, flags)
}

// restrictEach is Restrict, one mount after the other.
func restrictEach(fd int, flags uintptr) error {
	at, err := os.Readlink(Descriptor(fd))
	if err != nil {
		return fmt.Errorf("looking for the mount: %w", err)
	}
	if err := RestrictOne(fd, flags); err != nil {
		return err
	}
	mounts, err := mountinfo.Read()
	if err != nil {
		return err
	}
	for _, m := range mountinfo.Below(mounts, at) {
		if err := restrictBelow(m, flags); err != nil {
			return fmt.Errorf("restricting %q: %w", m.Path, err)
		}
	}
	return nil
}

// restrictBelow adds flags to a mount, unless another one hides it: then nobody reaches it.
func restrictBelow(m mountinfo.Mount, flags uintptr) error {
	fd, err := unix.Open(m.Path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	defer func() { _ = unix.Close(fd) }()
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(info)) {
		if id, ok := strings.CutPrefix(line, "mnt_id:"); ok && strings.TrimSpace(id) != m.ID {
			return nil
		}
	}
	return RestrictOne(fd, flags)
}

// RestrictOne adds flags to the mount that a descriptor names, and not to those below it.
func RestrictOne(fd int, flags uintptr) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return fmt.Errorf("looking at the mount: %w", err)
	}
	const kept = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	flags |= uintptr(st.Flags) & kept // the same bits; the kernel keeps what says when times are updated
	if err := unix.Mount("", Descriptor(fd), "", unix.MS_REMOUNT|unix.MS_BIND|flags, ""); err != nil {
		return fmt.Errorf("restricting the mount: %w", err)
	}
	return nil
}
