package gitfetch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Bounds of what a directory of a repository may hold.
const (
	maxFiles = 200_000
	maxBytes = 32 << 30
)

// Copy copies a directory of a tree to a new directory. Links are kept as
// links, and refused when they lead out of the directory; the repository's own
// files (".git") are left out.
func (t Tree) Copy(dir, to string) (err error) {
	top, err := os.OpenRoot(t.Root)
	if err != nil {
		return err
	}
	defer func() { _ = top.Close() }()
	info, err := top.Lstat(filepath.FromSlash(dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no directory %q at commit %s", dir, t.Commit)
	case err != nil:
		return fmt.Errorf("looking at %q: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("%q is not a directory at commit %s", dir, t.Commit)
	}
	from, err := top.OpenRoot(filepath.FromSlash(dir))
	if err != nil {
		return fmt.Errorf("looking at %q: %w", dir, err)
	}
	defer func() { _ = from.Close() }()
	c := &copier{from: from, to: to}
	if err := fs.WalkDir(from.FS(), ".", c.visit); err != nil {
		return fmt.Errorf("copying %q at commit %s: %w", dir, t.Commit, err)
	}
	return nil
}

type copier struct {
	from  *os.Root
	to    string
	files int
	bytes int64
}

func (c *copier) visit(name string, e fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if e.Name() == ".git" {
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if c.files++; c.files > maxFiles {
		return fmt.Errorf("it holds more than %d files", maxFiles)
	}
	to := filepath.Join(c.to, filepath.FromSlash(name))
	switch {
	case name == ".":
		return nil // made by the caller
	case e.IsDir():
		return os.Mkdir(to, 0o755)
	case e.Type() == fs.ModeSymlink:
		return c.link(name, to)
	case e.Type().IsRegular():
		return c.file(name, to)
	}
	return fmt.Errorf("%q is neither a file nor a directory", name)
}

func (c *copier) link(name, to string) error {
	target, err := c.from.Readlink(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	inside := filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(name), filepath.ToSlash(target))))
	if filepath.IsAbs(target) || !inside {
		return fmt.Errorf("link %q leads out of the task, to %q", name, target)
	}
	// A chain of links may lead out where each alone does not; one that leads
	// nowhere is harmless.
	if _, err := c.from.Stat(filepath.FromSlash(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("link %q leads out of the task, to %q: %w", name, target, err)
	}
	return os.Symlink(target, to)
}

func (c *copier) file(name, to string) (err error) {
	in, err := c.from.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	n, err := io.Copy(out, io.LimitReader(in, maxBytes-c.bytes+1))
	if err != nil {
		return fmt.Errorf("copying %q: %w", name, err)
	}
	if c.bytes += n; c.bytes > maxBytes {
		return fmt.Errorf("it holds more than %d bytes", int64(maxBytes))
	}
	return nil
}
