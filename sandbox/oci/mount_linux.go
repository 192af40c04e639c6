package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// launch is what has to happen in the mount namespace of a sandbox before the
// runtime starts.
type launch struct {
	Root  string `json:"root"` // directory that the parts are mounted below
	Parts []part `json:"parts"`
	// Trees is where the tmpfs with Fresh and Hide is mounted.
	Trees string `json:"trees"`
	Fresh tree   `json:"fresh"`
	Hide  tree   `json:"hide"`
	// UserXattr: the overlays keep their marks in user attributes.
	UserXattr bool `json:"user_xattr,omitempty"`
	// Layer: the upper directory becomes a layer, in which nothing may refer to
	// the layers below.
	Layer bool `json:"layer,omitempty"`
	// Memory is the directory for a tmpfs that holds the upper layers when
	// the disk's file system cannot.
	Memory string `json:"memory"`
	// HideUnified covers the second cgroup hierarchy of systems that have
	// both, which crun refuses.
	HideUnified bool `json:"hide_unified,omitempty"`
	// Argv of the runtime. Builtin: it is the program itself as runsc.
	Argv    []string `json:"argv"`
	Builtin bool     `json:"builtin,omitempty"`
}

// mountAll makes the mounts. The calling thread is in a mount namespace of its own.
func (l *launch) mountAll() error {
	// What is mounted here must not reach the host; what the host unmounts
	// must not be held by the sandbox.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("detaching mounts from the host: %w", err)
	}
	if l.HideUnified {
		if err := unix.Mount("tmpfs", unifiedDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k"); err != nil {
			return fmt.Errorf("covering %q: %w", unifiedDir, err)
		}
	}
	if err := l.makeTrees(); err != nil {
		return fmt.Errorf("making the layers above the root file system: %w", err)
	}
	for i := range l.Parts {
		if err := l.mountPart(i); err != nil {
			return fmt.Errorf("mounting the root file system's %q: %w", l.Parts[i].Path, err)
		}
	}
	return nil
}

func (l *launch) makeTrees() error {
	if err := unix.Mount("tmpfs", l.Trees, "tmpfs", unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mounting a tmpfs: %w", err)
	}
	if err := l.Fresh.create(filepath.Join(l.Trees, filepath.Base(dirFresh))); err != nil {
		return err
	}
	return l.Hide.create(filepath.Join(l.Trees, filepath.Base(dirHide)))
}

func (l *launch) mountPart(i int) error {
	p := &l.Parts[i]
	target := filepath.Join(l.Root, p.Path)
	err := mountOverlay(target, *p, l.options())
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	// Network file systems and other overlays cannot hold an upper layer.
	if memErr := l.moveToMemory(); memErr != nil {
		return errors.Join(err, memErr)
	}
	return mountOverlay(target, *p, l.options())
}

// moveToMemory puts the upper layers of all parts on a tmpfs. The kernel bounds
// it to half of the memory.
func (l *launch) moveToMemory() error {
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
		p.Upper, p.Work = filepath.Join(l.Memory, dirUpper, strconv.Itoa(i)), filepath.Join(l.Memory, dirWork, strconv.Itoa(i))
		if err := p.makeUpper(); err != nil {
			return err
		}
	}
	return nil
}

// options of all overlays besides their directories.
func (l *launch) options() []string {
	var o []string
	if l.UserXattr {
		o = append(o, "userxattr") // implies what layers need
	} else if l.Layer {
		o = append(o, "redirect_dir=off", "metacopy=off")
	}
	return o
}

// mountOverlay names the lower directories by file descriptors: their paths
// would have to fit, escaped, into one page together.
func mountOverlay(target string, p part, more []string) error {
	var lower []string
	for _, dir := range p.Lower {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: dir, Err: err}
		}
		defer func() { _ = unix.Close(fd) }()
		lower = append(lower, "/proc/self/fd/"+strconv.Itoa(fd))
	}
	options := []string{"lowerdir=" + strings.Join(lower, ":"), "upperdir=" + escapeOption(p.Upper), "workdir=" + escapeOption(p.Work)}
	options = append(options, more...)
	if err := unix.Mount("overlay", target, "overlay", unix.MS_NODEV, strings.Join(options, ",")); err != nil {
		return fmt.Errorf("mounting an overlay: %w", err)
	}
	return nil
}

func escapeOption(path string) string {
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`, `:`, `\:`).Replace(path)
}
