// Package buildcontext reads the directory that an image is built from: the
// Dockerfile, and the files that its instructions can copy. Begin with [Read].
//
// The directory is hostile: links in it are never followed out of it, and
// what is neither file, directory nor link is left out.
package buildcontext

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
)

// Names of the files that say what is built.
const (
	Dockerfile = "Dockerfile"
	ignoreName = ".dockerignore"
)

// Bounds in bytes.
const (
	maxDockerfile = 1 << 20
	maxIgnoreFile = 1 << 20
)

// Context is a directory without what its .dockerignore names.
type Context struct {
	dir    string
	names  []string // slash-separated, in the order of a walk
	ignore Ignore
	added  []addition
}

// addition is a file that is not in the directory.
type addition struct {
	name string
	text []byte
}

// Read looks through a directory. It must hold a Dockerfile.
func Read(dir string) (*Context, error) { return ReadNamed(dir, Dockerfile) }

// ReadNamed looks through a directory whose Dockerfile has the given name,
// slash-separated; empty when it has none and gets one with Add. An ignore file
// NAME.dockerignore of its own counts in place of the common one.
func ReadNamed(dir, dockerfile string) (*Context, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the build context: %w", err)
	}
	defer func() { _ = root.Close() }()
	ignoreFile := ignoreName
	if dockerfile != "" {
		if _, err := root.Stat(filepath.FromSlash(dockerfile)); err != nil {
			return nil, fmt.Errorf("reading the build context %s: %w", dir, err)
		}
		if own := dockerfile + ignoreName; dockerfile != Dockerfile && isThere(root, own) {
			ignoreFile = own
		}
	}
	ig, err := readIgnore(root, ignoreFile)
	if err != nil {
		return nil, err
	}
	c := &Context{dir: dir, ignore: ig}
	if err := c.walk(root, dockerfile); err != nil {
		return nil, fmt.Errorf("reading the build context %s: %w", dir, err)
	}
	return c, nil
}

// walk lists the names that are not ignored, and the Dockerfile.
func (c *Context) walk(root *os.Root, dockerfile string) error {
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case name == dockerfile || name == ignoreName: // the engine needs them
		case c.ignore.Excludes(name):
			if d.IsDir() && !c.ignore.exception && !strings.HasPrefix(dockerfile, name+"/") {
				return fs.SkipDir
			}
			return nil
		}
		if t := d.Type(); t.IsRegular() || t.IsDir() || t&fs.ModeSymlink != 0 {
			c.names = append(c.names, name)
		}
		return nil
	})
}

func isThere(root *os.Root, name string) bool {
	_, err := root.Stat(filepath.FromSlash(name))
	return err == nil
}

// Add puts a file into the context that its directory does not hold.
func (c *Context) Add(name string, text []byte) {
	c.added = append(c.added, addition{name, text})
}

func readIgnore(root *os.Root, name string) (Ignore, error) {
	text, err := bounded.ReadAt(root, name, maxIgnoreFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Ignore{}, nil
	}
	if err != nil {
		return Ignore{}, err
	}
	return ParseIgnore(text)
}

// Names lists what there is, slash-separated and in the order of a walk. The
// Dockerfile and the .dockerignore are there even when they are ignored.
func (c *Context) Names() []string { return c.names }

// Ignored reports whether the .dockerignore leaves a name out.
func (c *Context) Ignored(name string) bool { return c.ignore.Excludes(name) }

// ReadDockerfile returns the Dockerfile of a context's directory, bounded.
// Without one the error is fs.ErrNotExist.
func ReadDockerfile(dir string) (string, error) { return ReadDockerfileNamed(dir, Dockerfile) }

// ReadDockerfileNamed is ReadDockerfile for another name, slash-separated.
func ReadDockerfileNamed(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	text, err := bounded.ReadAt(root, filepath.FromSlash(name), maxDockerfile)
	return string(text), err
}

// Hash names the context by content: names, kinds, permission bits, bytes.
// Times and owners do not count, as they do not in engines' own caches. The
// platform ("linux") counts.
func (c *Context) Hash(platform string) (string, error) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "proctor build context 1\n%s\n", platform)
	err := c.write(&hashTar{h: h})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil))[:32], nil
}

// Tar writes the context as engines take it; everything belongs to root.
func (c *Context) Tar(w io.Writer) error {
	out := tar.NewWriter(w)
	if err := c.write(out); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("ending the build context: %w", err)
	}
	return nil
}

// entryWriter is the part of tar.Writer that a context is written with.
type entryWriter interface {
	WriteHeader(*tar.Header) error
	io.Writer
}

// hashTar feeds what counts of each entry to a hash.
type hashTar struct{ h hash.Hash }

func (t *hashTar) WriteHeader(h *tar.Header) error {
	_, err := fmt.Fprintf(t.h, "%c %o %d %q %q\n", h.Typeflag, h.Mode, h.Size, h.Name, h.Linkname)
	if err != nil {
		return fmt.Errorf("hashing %q: %w", h.Name, err)
	}
	return nil
}

func (t *hashTar) Write(p []byte) (int, error) { return t.h.Write(p) }

func (c *Context) write(w entryWriter) error {
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return fmt.Errorf("reading the build context: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, name := range c.names {
		if err := writeEntry(w, root, name); err != nil {
			return fmt.Errorf("reading the build context %s: %w", c.dir, err)
		}
	}
	for _, a := range c.added {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: a.name, Mode: 0o644, Size: int64(len(a.text))}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(a.text); err != nil {
			return err
		}
	}
	return nil
}

// writeEntry writes one file, directory or link as root's. Links are written
// as links, whatever they point to.
func writeEntry(w entryWriter, root *os.Root, name string) error {
	info, err := root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime().Truncate(time.Second)}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, strings.ReplaceAll(target, "\\", "/"), 0o777
	case info.Mode().IsRegular():
		return writeFile(w, root, name, h)
	default:
		return fmt.Errorf("%s: no file any more", name)
	}
	return w.WriteHeader(h)
}

func writeFile(w entryWriter, root *os.Root, name string, h *tar.Header) error {
	f, err := bounded.OpenAt(root, filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := bounded.Fits(f, bounded.MaxContent)
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	if _, err := io.CopyN(w, f, h.Size); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
