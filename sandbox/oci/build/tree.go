package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/sandbox/buildcontext"
)

// tree is a file system that is read without following links. Names are those
// of package fs.
type tree interface {
	fs.ReadLinkFS
	fs.ReadDirFS
}

// contextTree is what COPY sees of the build's context.
type contextTree struct {
	root *os.Root
	seen map[string]bool // what is not ignored, and the directories on the way
}

func openContext(dir string, files *buildcontext.Context) (*contextTree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the build context: %w", err)
	}
	c := &contextTree{root: root, seen: map[string]bool{".": true}}
	for _, name := range files.Names() {
		if files.Ignored(name) {
			continue
		}
		for at := name; !c.seen[at]; at = path.Dir(at) {
			c.seen[at] = true
		}
	}
	return c, nil
}

func (c *contextTree) close() { _ = c.root.Close() }

func (c *contextTree) check(op, name string) error {
	if !c.seen[name] {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return nil
}

func (c *contextTree) Lstat(name string) (fs.FileInfo, error) {
	if err := c.check("lstat", name); err != nil {
		return nil, err
	}
	return c.root.Lstat(filepath.FromSlash(name))
}

func (c *contextTree) ReadLink(name string) (string, error) {
	if err := c.check("readlink", name); err != nil {
		return "", err
	}
	to, err := c.root.Readlink(filepath.FromSlash(name))
	return filepath.ToSlash(to), err
}

// Open opens a regular file.
func (c *contextTree) Open(name string) (fs.File, error) {
	info, err := c.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return c.root.Open(filepath.FromSlash(name))
}

func (c *contextTree) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := c.check("readdir", name); err != nil {
		return nil, err
	}
	dir, err := c.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	list, err := dir.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool { return !c.seen[path.Join(name, e.Name())] })
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// maxLinks bounds the links that are followed on one path, as the kernel does.
const maxLinks = 255

var (
	errLoop   = errors.New("too many levels of symbolic links")
	errNotDir = errors.New("not a directory")
)

// resolve follows the links of a path as if the tree were the root of all
// files. info is nil when there is nothing; then the name is where it would be.
func resolve(t tree, name string) (real string, info fs.FileInfo, err error) {
	real, rest := ".", strings.Split(path.Clean("/" + name)[1:], "/")
	info, err = lstat(t, real)
	for links := 0; len(rest) > 0 && err == nil; {
		next := rest[0]
		rest = rest[1:]
		switch next {
		case "", ".":
			continue
		case "..":
			real = path.Join(".", path.Join("/", real, "..")[1:])
			info, err = lstat(t, real)
			continue
		}
		at := path.Join(real, next)
		if info != nil && !info.IsDir() {
			return "", nil, fmt.Errorf("%q: %w", "/"+real, errNotDir)
		}
		if info, err = lstat(t, at); err != nil || info == nil || info.Mode()&fs.ModeSymlink == 0 {
			real = at
			continue
		}
		if links++; links > maxLinks {
			return "", nil, fmt.Errorf("%q: %w", "/"+at, errLoop)
		}
		var target string
		if target, err = t.ReadLink(at); err != nil {
			break
		}
		if path.IsAbs(target) {
			real = "."
		}
		rest = append(strings.Split(target, "/"), rest...)
		info, err = lstat(t, real)
	}
	return real, info, err
}

// lstat returns nil for what is not there.
func lstat(t tree, name string) (fs.FileInfo, error) {
	info, err := t.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// hasWildcards distinguishes patterns from names (Go's path.Match).
func hasWildcards(s string) bool { return strings.ContainsAny(s, `*?[\`) }

// match lists what a pattern of COPY names, in order: the whole name with no
// link followed in its last component. A name without wildcards is listed
// whether it is there or not.
func match(t tree, pattern string) ([]string, error) {
	if !hasWildcards(pattern) {
		return []string{path.Clean("/" + pattern)[1:]}, nil
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	found := []string{""}
	parts := strings.Split(path.Clean("/" + pattern)[1:], "/")
	for i, part := range parts {
		var next []string
		for _, dir := range found {
			names, err := matchIn(t, dir, part, i == len(parts)-1)
			if err != nil {
				return nil, err
			}
			next = append(next, names...)
		}
		found = next
	}
	return found, nil
}

// matchIn matches one component in a directory.
func matchIn(t tree, dir, part string, last bool) ([]string, error) {
	real, info, err := resolve(t, dir)
	if err != nil || info == nil || !info.IsDir() {
		return nil, nil // what cannot be reached does not match
	}
	if !hasWildcards(part) && !last {
		return []string{path.Join(dir, part)}, nil
	}
	list, err := t.ReadDir(real)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range list {
		if ok, err := path.Match(part, e.Name()); err == nil && ok {
			names = append(names, path.Join(dir, e.Name()))
		}
	}
	return names, nil
}
