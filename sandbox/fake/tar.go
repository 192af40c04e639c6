package fake

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/sandbox"
)

// unpack writes a tar stream below dir. Directories get their modes at the
// end, so that a read-only one can be filled.
func (f *files) unpack(dir string, stream io.Reader) error {
	if err := f.mkdir(dir); err != nil {
		return err
	}
	var dirs []*tar.Header
	tr := tar.NewReader(stream)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the archive: %w", err)
		}
		// A name that climbs stops at dir.
		h.Name = path.Join(dir, path.Clean("/"+h.Name))
		if err := f.entry(h, tr); err != nil {
			return fmt.Errorf("entry %q: %w", h.Name, err)
		}
		if h.Typeflag == tar.TypeDir {
			dirs = append(dirs, h)
		}
	}
	for _, h := range slices.Backward(dirs) {
		if err := f.change(h.Name, func(root *os.Root, name string) error { return attributes(root, name, h) }); err != nil {
			return fmt.Errorf("entry %q: %w", h.Name, err)
		}
	}
	if _, err := io.Copy(io.Discard, stream); err != nil {
		return fmt.Errorf("reading what follows the archive: %w", err)
	}
	return nil
}

func (f *files) entry(h *tar.Header, body io.Reader) error {
	if h.Typeflag == tar.TypeDir {
		return f.mkdirOver(h.Name)
	}
	if err := f.mkdir(path.Dir(h.Name)); err != nil {
		return err
	}
	return f.change(h.Name, func(root *os.Root, name string) error {
		// Nothing is written through a link that is there already.
		if err := root.RemoveAll(name); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeReg:
			return writeFile(root, name, h, body)
		case tar.TypeSymlink:
			if err := root.Symlink(h.Linkname, name); err != nil {
				return err
			}
			return own(root, name, h)
		default:
			return fmt.Errorf("type %q cannot be unpacked", h.Typeflag)
		}
	})
}

// mkdirOver makes a directory, also in the place of something else.
func (f *files) mkdirOver(dir string) error {
	var fi fs.FileInfo
	err := f.at(dir, func(root *os.Root, name string) (err error) {
		fi, err = root.Lstat(name)
		return err
	})
	if err == nil && !fi.IsDir() {
		if err := f.change(dir, func(root *os.Root, name string) error { return root.Remove(name) }); err != nil {
			return err
		}
	}
	return f.mkdir(dir)
}

func writeFile(root *os.Root, name string, h *tar.Header, body io.Reader) error {
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, body)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return attributes(root, name, h)
}

func attributes(root *os.Root, name string, h *tar.Header) error {
	if err := own(root, name, h); err != nil {
		return err
	}
	return root.Chmod(name, h.FileInfo().Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
}

// own gives a file away where the test runs as root; elsewhere it cannot.
func own(root *os.Root, name string, h *tar.Header) error {
	if os.Geteuid() != 0 || (h.Uid == 0 && h.Gid == 0) {
		return nil
	}
	return root.Lchown(name, h.Uid, h.Gid)
}

// pack writes p as a tar stream.
func (f *files) pack(p string, stream io.Writer) error {
	fi, err := f.lstat(p)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
		return fmt.Errorf("%q: %w", p, sandbox.ErrNotExist)
	}
	if err != nil {
		return err
	}
	tw := tar.NewWriter(stream)
	if fi.IsDir() {
		err = f.packDir(tw, p, "")
	} else {
		err = f.packEntry(tw, p, path.Base(p))
	}
	if err != nil {
		return err
	}
	if err := tw.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	return nil
}

// lstat tells a path below a file from one whose lookup failed.
func (f *files) lstat(p string) (fi fs.FileInfo, err error) {
	err = f.at(p, func(root *os.Root, name string) (err error) {
		if parent, err := root.Stat(path.Dir(name)); err == nil && !parent.IsDir() {
			return errNotDir
		}
		fi, err = root.Lstat(name)
		return err
	})
	return fi, err
}

func (f *files) packDir(tw *tar.Writer, dir, prefix string) error {
	var names []string
	err := f.at(dir, func(root *os.Root, name string) error {
		d, err := root.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		names, err = d.Readdirnames(-1)
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := f.packEntry(tw, path.Join(dir, name), prefix+name); err != nil {
			return err
		}
	}
	return nil
}

func (f *files) packEntry(tw *tar.Writer, p, name string) error {
	fi, err := f.lstat(p)
	if err != nil {
		return err
	}
	h := &tar.Header{Name: strings.TrimPrefix(name, "/"), Mode: int64(fi.Mode().Perm()), ModTime: fi.ModTime()}
	for mode, bit := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if fi.Mode()&mode != 0 {
			h.Mode |= bit
		}
	}
	h.Uid, h.Gid = owner(fi)
	switch fi.Mode().Type() {
	case fs.ModeDir:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		if err := tw.WriteHeader(h); err != nil {
			return fmt.Errorf("packing %q: %w", p, err)
		}
		return f.packDir(tw, p, name+"/")
	case fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		if err := f.at(p, func(root *os.Root, name string) (err error) {
			h.Linkname, err = root.Readlink(name)
			return err
		}); err != nil {
			return err
		}
		if err := tw.WriteHeader(h); err != nil {
			return fmt.Errorf("packing %q: %w", p, err)
		}
		return nil
	case 0:
		h.Typeflag, h.Size = tar.TypeReg, fi.Size()
		return f.at(p, func(root *os.Root, name string) error { return packFile(tw, root, name, h) })
	default:
		return nil
	}
}

func packFile(tw *tar.Writer, root *os.Root, name string, h *tar.Header) error {
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err = tw.WriteHeader(h); err == nil {
		_, err = io.CopyN(tw, file, h.Size)
	}
	if err != nil {
		return fmt.Errorf("packing %q: %w", name, err)
	}
	return nil
}
