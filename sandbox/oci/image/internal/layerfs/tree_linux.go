package layerfs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
)

// tree gives out the directories of a layer that is being unpacked, as open
// file descriptors by resolved path: a path below the root in which no
// component is a link, "" for the root itself.
type tree struct {
	root *os.Root
	top  *node
	// make makes a directory that walk needs; set by the unpacker.
	make func(at place) error
	// cache of open directories, by resolved path, without the root.
	cache map[string]*node
}

// node is an open directory. The descriptor belongs to the tree and is valid
// until the next call of one of its methods, unless that is path.
type node struct {
	file *os.File
	fd   int
	path string
}

// place is a name in a directory: where an entry goes.
type place struct {
	dir  *node
	base string
}

func (p place) path() string { return join(p.dir.path, p.base) }

func (p place) exists() bool {
	var st unix.Stat_t
	return unix.Fstatat(p.dir.fd, p.base, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

func join(dir, base string) string {
	if dir == "" {
		return base
	}
	return dir + "/" + base
}

// maxOpenDirs bounds the cache; archives come one directory after another.
const maxOpenDirs = 64

const openDirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

func openTree(dir string) (*tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &tree{root: root, top: &node{file: f, fd: int(f.Fd())}, cache: map[string]*node{}}, nil
}

func (t *tree) close() error {
	return errors.Join(t.forget(""), t.top.file.Close(), t.root.Close())
}

// forget closes the directories at and below a path.
func (t *tree) forget(name string) error {
	var errs []error
	for p, n := range t.cache {
		if name == "" || p == name || strings.HasPrefix(p, name+"/") {
			delete(t.cache, p)
			errs = append(errs, n.file.Close())
		}
	}
	return errors.Join(errs...)
}

// removeAll removes what a resolved path names, without following links.
func (t *tree) removeAll(name string) error {
	return errors.Join(t.forget(name), t.root.RemoveAll(name))
}

// open returns the directory with a resolved path.
func (t *tree) open(name string) (*node, error) {
	if name == "" {
		return t.top, nil
	}
	if n := t.cache[name]; n != nil {
		return n, nil
	}
	parent, base := path.Split(name)
	dir, err := t.open(strings.TrimSuffix(parent, "/"))
	if err != nil {
		return nil, err
	}
	return t.child(place{dir: dir, base: base})
}

// child opens a directory in a directory. Errors: unix.ENOENT, and ENOTDIR or
// ELOOP for what is no directory.
func (t *tree) child(at place) (*node, error) {
	name := at.path()
	if n := t.cache[name]; n != nil {
		return n, nil
	}
	fd, err := unix.Openat(at.dir.fd, at.base, openDirFlags, 0)
	if err != nil {
		return nil, os.NewSyscallError("openat", err)
	}
	if len(t.cache) >= maxOpenDirs {
		if err := t.forget(""); err != nil {
			_ = unix.Close(fd)
			return nil, err
		}
	}
	n := &node{file: os.NewFile(uintptr(fd), name), fd: fd, path: name}
	t.cache[name] = n
	return n, nil
}

// walk resolves a path from the layer's root like a process whose root
// directory that is: links are followed inside, also absolute ones, and ".."
// at the root stays there. What is missing is made when asked for.
func (t *tree) walk(rel string, create bool) (*node, error) {
	if n := t.cache[rel]; n != nil {
		return n, nil
	}
	at, links := t.top, 0
	rest := rel
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			up, err := t.parent(at)
			if err != nil {
				return nil, err
			}
			at = up
			continue
		}
		next, target, err := t.step(place{dir: at, base: part}, create)
		if err != nil {
			return nil, err
		}
		if next != nil {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return nil, fmt.Errorf("%w: more than %d links on the way", blob.ErrMalformed, maxLinks)
		}
		if strings.HasPrefix(target, "/") {
			at = t.top
		}
		rest = target + "/" + rest
		if len(rest) > maxPath {
			return nil, fmt.Errorf("%w: links lead to a path of more than %d bytes", blob.ErrLimit, maxPath)
		}
	}
	return at, nil
}

func (t *tree) parent(n *node) (*node, error) {
	dir, _ := path.Split(n.path)
	return t.open(strings.TrimSuffix(dir, "/"))
}

// step goes into a directory, or returns the target of a link.
func (t *tree) step(at place, create bool) (next *node, target string, err error) {
	next, err = t.child(at)
	switch {
	case err == nil:
		return next, "", nil
	case errors.Is(err, unix.ENOENT) && create:
		if err := t.make(at); err != nil {
			return nil, "", err
		}
		next, err = t.reopen(at)
		return next, "", err
	case errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP):
		return t.follow(at, create)
	}
	return nil, "", fmt.Errorf("opening a parent directory: %w", err)
}

// follow deals with a name that is no directory: a link, one of the layer's own
// whiteouts, which gives way to a directory, or something else.
func (t *tree) follow(at place, create bool) (next *node, target string, err error) {
	buf := make([]byte, maxPath+1)
	n, err := unix.Readlinkat(at.dir.fd, at.base, buf)
	if err == nil {
		return nil, string(buf[:n]), nil
	}
	var st unix.Stat_t
	if err := unix.Fstatat(at.dir.fd, at.base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, "", fmt.Errorf("opening a parent directory: %w", err)
	}
	if !isWhiteoutStat(&st) || !create {
		return nil, "", fmt.Errorf("%w: a parent is not a directory", blob.ErrMalformed)
	}
	if err := t.make(at); err != nil {
		return nil, "", err
	}
	next, err = t.reopen(at)
	return next, "", err
}

// reopen opens a directory that was just made. Making it may have used the
// tree, so the way is taken from the root again.
func (t *tree) reopen(at place) (*node, error) { return t.open(at.path()) }
