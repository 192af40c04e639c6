package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is a root file system that is put together of directories: overlays,
// each with a writable layer.
type Root struct {
	Dir   string `json:"root"`  // directory that the parts are mounted below
	State string `json:"state"` // directory that holds all that the overlays write
	Parts []Part `json:"parts"`
	// Trees is where the tmpfs with Fresh and Hide is mounted.
	Trees string `json:"trees"`
	Fresh Tree   `json:"fresh"`
	Hide  Tree   `json:"hide"`
	// UserXattr: the overlays keep their marks in user attributes.
	UserXattr bool `json:"user_xattr,omitempty"`
	// Layer: the upper directory becomes a layer, in which nothing may refer to
	// the layers below.
	Layer bool `json:"layer,omitempty"`
	// Memory is the directory for a tmpfs that holds the upper layers when
	// the disk's file system cannot.
	Memory string `json:"memory"`
	// Writable directories are shown at another place too, from where they can be
	// mounted again when the rest has become read-only.
	Writable []Writable `json:"writable,omitempty"`
	// again are those of Writable that links lead to the directory of another one,
	// known when all is mounted.
	again []Writable
}

// Writable is a directory of the root file system that stays writable.
type Writable struct {
	Path string `json:"path"` // in the sandbox; made where it is missing
	At   string `json:"at"`   // the directory on the host at which it is shown
}

// Part is one mounted piece of a root file system.
type Part struct {
	Path string `json:"path"` // where it lies in the sandbox
	// Lower directories on the host, highest first, and those that the overlay
	// writes to.
	Lower []string `json:"lower"`
	Upper string   `json:"upper"`
	Work  string   `json:"work"`
	// Stack are directories that lie on all of Lower, highest first. Base, when it
	// is set, is where Lower is mounted alone before: a directory of an overlay
	// must not lie in another one, and those of Stack can lie in one of Lower, but
	// not in an overlay of it.
	Stack []string `json:"stack,omitempty"`
	Base  string   `json:"base,omitempty"`
	// Mode and owner that the merged directory must have.
	Mode fs.FileMode `json:"mode"`
	UID  int         `json:"uid"`
	GID  int         `json:"gid"`
}

// The trees lie on a tmpfs, because the directories of an overlay must not lie
// in each other, and one of them can be the host's root.
const (
	freshDir = "fresh"
	hideDir  = "hide"
)

// AddTrees puts the trees on top of the lower directories of the parts, as far
// as they have something to say about them.
func (l *Root) AddTrees() {
	for i := range l.Parts {
		p := &l.Parts[i]
		var lower []string
		if l.Fresh.Has(p.Path) {
			lower = append(lower, filepath.Join(l.Trees, freshDir, p.Path))
		}
		if l.Hide.Has(p.Path) {
			lower = append(lower, filepath.Join(l.Trees, hideDir, p.Path))
		}
		p.Lower = append(lower, p.Lower...)
	}
}

// MakeUpper creates the directories that the overlay writes to.
func (p *Part) MakeUpper() error {
	if err := os.MkdirAll(p.Work, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.Upper), 0o755); err != nil {
		return err
	}
	return Entry{Kind: fs.ModeDir, Mode: p.Mode, UID: p.UID, GID: p.GID}.Create(p.Upper)
}

// Below lists the paths of the parts that are mounted below the root directory.
func (l *Root) Below() []string {
	var paths []string
	for _, p := range l.Parts {
		if p.Path != "/" {
			paths = append(paths, p.Path)
		}
	}
	return paths
}

// Mount makes the mounts. The caller is in a mount namespace of its own, and
// has detached it from the host with Detach.
func (l *Root) Mount() error {
	if err := l.makeTrees(); err != nil {
		return fmt.Errorf("making the layers above the root file system: %w", err)
	}
	for i := range l.Parts {
		if err := l.mountPart(i); err != nil {
			return fmt.Errorf("mounting the root file system's %q: %w", l.Parts[i].Path, err)
		}
	}
	return l.showWritable()
}

// showWritable binds the writable directories. What they are below is the
// sandbox's, so that no link on the way leads out of it.
func (l *Root) showWritable() error {
	if len(l.Writable) == 0 {
		return nil
	}
	root, err := unix.Open(l.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: l.Dir, Err: err}
	}
	defer func() { _ = unix.Close(root) }()
	seen := map[[2]uint64]bool{}
	for _, w := range l.Writable {
		id, err := w.show(root)
		if err != nil {
			return fmt.Errorf("keeping %q writable: %w", w.Path, err)
		}
		if seen[id] {
			l.again = append(l.again, w)
		}
		seen[id] = true
	}
	return nil
}

// Again returns those of Writable that links lead to the directory of an earlier one.
// Mounting them does nothing more.
func (l *Root) Again() []Writable { return l.again }

// show binds the directory, and returns which one it is.
func (w Writable) show(root int) (id [2]uint64, err error) {
	fd, err := Lookup(root, w.Path, MakeDir)
	if err != nil {
		return id, err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return id, os.NewSyscallError("fstat", err)
	}
	err = unix.Mount(Descriptor(fd), w.At, "", unix.MS_BIND|unix.MS_REC, "")
	return [2]uint64{uint64(st.Dev), st.Ino}, os.NewSyscallError("mount", err) //nolint:unconvert // not everywhere the same type
}

// Detach keeps what is mounted in the caller's mount namespace from the host. What the
// host unmounts is not held by the namespace.
func Detach() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("detaching mounts from the host: %w", err)
	}
	return nil
}

func (l *Root) makeTrees() error {
	if err := unix.Mount("tmpfs", l.Trees, "tmpfs", unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mounting a tmpfs: %w", err)
	}
	if err := l.Fresh.Create(filepath.Join(l.Trees, freshDir)); err != nil {
		return err
	}
	return l.Hide.Create(filepath.Join(l.Trees, hideDir))
}

func (l *Root) mountPart(i int) error {
	p := &l.Parts[i]
	if len(p.Stack) > 0 {
		if err := l.stack(p); err != nil {
			return err
		}
	}
	target := filepath.Join(l.Dir, p.Path)
	err := l.mountWritable(target, *p)
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	// Network file systems and other overlays cannot hold an upper layer.
	if memErr := l.moveToMemory(); memErr != nil {
		return errors.Join(err, memErr)
	}
	return l.mountWritable(target, *p)
}

// mountWritable mounts an overlay that is written to. What is thrown away with the sandbox
// need not reach the disk: the kernel would write all that it holds for the disk's file
// system, of whomever, before the overlay is gone (Documentation/filesystems/overlayfs.rst,
// "Volatile mount").
func (l *Root) mountWritable(target string, p Part) error {
	if l.Layer {
		return l.mountOverlay(target, p)
	}
	err := l.mountOverlay(target, p, "volatile")
	if errors.Is(err, unix.EINVAL) { // Linux before 5.10, or another reason
		err = l.mountOverlay(target, p)
	}
	return err
}

// stack puts Stack on Lower.
func (l *Root) stack(p *Part) error {
	if p.Base != "" {
		// Without an upper directory the kernel wants two lower ones.
		empty := filepath.Join(p.Base, "empty")
		merged := filepath.Join(p.Base, "merged")
		if err := unix.Mount("tmpfs", p.Base, "tmpfs", unix.MS_NODEV, "mode=755"); err != nil {
			return fmt.Errorf("mounting a tmpfs: %w", err)
		}
		if err := errors.Join(os.Mkdir(empty, 0o755), os.Mkdir(merged, 0o755)); err != nil {
			return err
		}
		below := Part{Lower: append(p.Lower[:len(p.Lower):len(p.Lower)], empty)}
		if err := l.mountOverlay(merged, below); err != nil {
			return fmt.Errorf("mounting what the snapshot stands on: %w", err)
		}
		p.Lower = []string{merged}
	}
	p.Lower = append(p.Stack[:len(p.Stack):len(p.Stack)], p.Lower...)
	return nil
}

// moveToMemory puts the upper layers of all parts on a tmpfs. The kernel bounds
// it to half of the memory.
func (l *Root) moveToMemory() error {
	if strings.HasPrefix(l.Parts[0].Upper, l.Memory+"/") {
		return nil
	}
	if err := os.MkdirAll(l.Memory, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", l.Memory, "tmpfs", unix.MS_NODEV, "mode=700"); err != nil {
		return fmt.Errorf("mounting a tmpfs for the upper layer: %w", err)
	}
	for i := range l.Parts {
		p := &l.Parts[i]
		p.Upper, p.Work = filepath.Join(l.Memory, "upper", strconv.Itoa(i)), filepath.Join(l.Memory, "work", strconv.Itoa(i))
		if err := p.MakeUpper(); err != nil {
			return err
		}
	}
	return nil
}

// options of all overlays besides their directories.
func (l *Root) options() []string {
	var o []string
	if l.UserXattr {
		o = append(o, "userxattr") // implies what layers need
	} else if l.Layer {
		o = append(o, "redirect_dir=off", "metacopy=off")
	}
	return o
}

// mountOverlay names lower directories by file descriptors: paths would have to fit,
// escaped, into one page together. And they could be read in the sandbox's list of
// mounts, so that those of the sandbox itself are named from State on.
func (l *Root) mountOverlay(target string, p Part, more ...string) error {
	var open descriptors
	defer open.close()
	lower, err := open.names(p.Lower...)
	if err != nil {
		return err
	}
	options := []string{"lowerdir=" + strings.Join(lower, ":")}
	if p.Upper != "" {
		state, err := open.names(l.State)
		if err != nil {
			return err
		}
		upper, upperErr := filepath.Rel(l.State, p.Upper)
		work, workErr := filepath.Rel(l.State, p.Work)
		if err := errors.Join(upperErr, workErr); err != nil {
			return err
		}
		options = append(options, "upperdir="+state[0]+"/"+escapeOption(upper), "workdir="+state[0]+"/"+escapeOption(work))
	}
	options = append(append(options, more...), l.options()...)
	if err := unix.Mount("overlay", target, "overlay", unix.MS_NODEV, strings.Join(options, ",")); err != nil {
		return fmt.Errorf("mounting an overlay: %w", err)
	}
	return nil
}

func escapeOption(path string) string {
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`, `:`, `\:`).Replace(path)
}

// descriptors are directories that are open.
type descriptors []int

// names opens directories and returns names for them that hold until close.
func (d *descriptors) names(dirs ...string) ([]string, error) {
	var names []string
	for _, dir := range dirs {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: dir, Err: err}
		}
		*d = append(*d, fd)
		names = append(names, Descriptor(fd))
	}
	return names, nil
}

func (d *descriptors) close() {
	for _, fd := range *d {
		_ = unix.Close(fd)
	}
}
