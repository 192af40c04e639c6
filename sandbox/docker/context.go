package docker

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
)

// buildContext is what a Dockerfile can see: a directory without what its
// .dockerignore names.
type buildContext struct {
	dir   string
	names []string // slash-separated, in the order of a walk
}

const (
	dockerfileName = "Dockerfile"
	ignoreName     = ".dockerignore"
	maxIgnoreFile  = 1 << 20
)

func readContext(dir string) (*buildContext, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the build context: %w", err)
	}
	defer root.Close()
	if _, err := root.Stat(dockerfileName); err != nil {
		return nil, fmt.Errorf("reading the build context %s: %w", dir, err)
	}
	ig, err := readIgnore(root)
	if err != nil {
		return nil, err
	}
	c := &buildContext{dir: dir}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case name == dockerfileName || name == ignoreName: // the engine needs them
		case ig.excludes(name):
			if d.IsDir() && !ig.exception {
				return fs.SkipDir
			}
			return nil
		}
		if t := d.Type(); t.IsRegular() || t.IsDir() || t&fs.ModeSymlink != 0 {
			c.names = append(c.names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the build context %s: %w", dir, err)
	}
	return c, nil
}

func readIgnore(root *os.Root) (ignore, error) {
	f, err := root.Open(ignoreName)
	if errors.Is(err, fs.ErrNotExist) {
		return ignore{}, nil
	}
	if err != nil {
		return ignore{}, fmt.Errorf("reading %s: %w", ignoreName, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	if err != nil {
		return ignore{}, fmt.Errorf("reading %s: %w", ignoreName, err)
	}
	return parseIgnore(text)
}

// hash names the context by content: names, kinds, permission bits, bytes.
// Times and owners do not count, as they do not in the engine's own cache.
func (c *buildContext) hash(platform string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "proctor build context 1\n%s\n", platform)
	err := c.write(&hashTar{h: h})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil))[:32], nil
}

// tar writes the context for the engine.
func (c *buildContext) tar(w io.Writer) error {
	out := tar.NewWriter(w)
	if err := c.write(out); err != nil {
		return err
	}
	return out.Close()
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
	return err
}

func (t *hashTar) Write(p []byte) (int, error) { return t.h.Write(p) }

func (c *buildContext) write(w entryWriter) error {
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return fmt.Errorf("reading the build context: %w", err)
	}
	defer root.Close()
	for _, name := range c.names {
		if err := writeEntry(w, root, name); err != nil {
			return fmt.Errorf("reading the build context %s: %w", c.dir, err)
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
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
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
