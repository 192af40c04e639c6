package guest

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/bounded"
)

// errMissing marks a download whose path is not there.
var errMissing = errors.New("nothing to download")

// upload unpacks the call's data below dir. The path of dir is resolved in the
// sandbox's own root, which the supervisor cannot see beyond; entries stay
// below dir whatever links they meet.
func (s *server) upload(c *service, dir string) error {
	if !path.IsAbs(dir) {
		return fmt.Errorf("%q is not an absolute path", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	in := &callReader{s: s, c: c}
	u := unpacker{root: root, way: bounded.NewWay(root)}
	defer u.way.Close()
	if err := u.unpack(tar.NewReader(in)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("reading what follows the archive: %w", err)
	}
	return nil
}

// callReader reads what the client sends for a call.
type callReader struct {
	s     *server
	c     *service
	frame []byte // the whole of it, to be given back
	rest  []byte // what is not read of it yet
	err   error
}

func (r *callReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		r.s.bufs.Put(r.frame)
		r.frame = nil
		if r.err != nil {
			return 0, r.err
		}
		f, ok := r.c.in.Pop(r.c.canceled, nil)
		switch {
		case !ok:
			r.err = errCanceled
		case f.Type == reqDataEnd && len(f.Payload) > 0:
			r.err = errors.New(string(f.Payload))
		case f.Type == reqDataEnd:
			r.err = io.EOF
		default:
			r.frame, r.rest = f.Payload, f.Payload
			if n := r.c.in.Consumed(len(f.Payload)); n > 0 {
				_ = r.s.w.SendCredit(repCredit, r.c.id, n)
			}
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// unpacker writes tar entries below root. Directories get their modes, owners
// and times at the end, so that a read-only one can be filled.
type unpacker struct {
	root *os.Root
	way  *bounded.Way // to the directory of the last entry
	dirs []*tar.Header
}

func (u *unpacker) unpack(tr *tar.Reader) error {
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the archive: %w", err)
		}
		if err := u.entry(h, tr); err != nil {
			return fmt.Errorf("entry %.80q: %w", h.Name, err)
		}
	}
	done := map[string]bool{}
	for i := len(u.dirs) - 1; i >= 0; i-- {
		h := u.dirs[i]
		if done[h.Name] { // of several entries the last one counts
			continue
		}
		done[h.Name] = true
		dir, base, err := u.at(h.Name, 0)
		if err == nil {
			err = attributes(dir, base, h)
		}
		if err != nil {
			return fmt.Errorf("entry %.80q: %w", h.Name, err)
		}
	}
	return nil
}

func (u *unpacker) entry(h *tar.Header, body io.Reader) error {
	name := path.Clean(strings.TrimLeft(h.Name, "/"))
	h.Name = name
	if name == "." {
		if h.Typeflag == tar.TypeDir {
			u.dirs = append(u.dirs, h)
		}
		return nil
	}
	dir, base, err := u.at(name, 0o755)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return unpackFile(dir, base, h, body)
	case tar.TypeDir:
		if err := unpackDir(dir, base); err != nil {
			return err
		}
		u.dirs = append(u.dirs, h)
		return nil
	case tar.TypeSymlink:
		err := replacing(dir, base, func() error { return dir.Symlink(h.Linkname, base) })
		if err == nil {
			err = chown(dir, base, h)
		}
		return err
	case tar.TypeLink:
		target := path.Clean(strings.TrimLeft(h.Linkname, "/"))
		if target == name {
			return nil
		}
		return replacing(u.root, name, func() error { return u.root.Link(target, name) })
	case tar.TypeXGlobalHeader:
		return nil
	default:
		return fmt.Errorf("type %q cannot be unpacked", h.Typeflag)
	}
}

// at returns the directory that an entry is in, and its name there. Where perm is not 0
// it is made if it is missing. Through links it is found from the top.
func (u *unpacker) at(name string, perm os.FileMode) (dir *os.Root, base string, err error) {
	if err := bounded.CheckPath(name); err != nil {
		return nil, "", err
	}
	parent, base := path.Split(name)
	parent = path.Clean(parent)
	dir, err = u.way.To(parent, perm)
	if !errors.Is(err, unix.ENOTDIR) {
		return dir, base, err
	}
	u.way.Close() // who goes through links may take directories of the way away
	if perm != 0 {
		if err := u.root.MkdirAll(parent, perm); err != nil {
			return nil, "", err
		}
	}
	return u.root, name, nil
}

// replacing makes something new under a name; what has the name goes first,
// so that nothing is written through a link.
func replacing(dir *os.Root, name string, make func() error) error {
	err := make()
	if errors.Is(err, os.ErrExist) {
		if err := dir.RemoveAll(name); err != nil {
			return err
		}
		err = make()
	}
	return err
}

func unpackFile(dir *os.Root, name string, h *tar.Header, body io.Reader) error {
	var f *os.File
	err := replacing(dir, name, func() (err error) {
		f, err = dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	_, err = bounded.Copy(f, body, h.Size)
	if err == nil {
		err = ignoreOwner(f.Chown(h.Uid, h.Gid))
	}
	if err == nil {
		err = f.Chmod(fileMode(h))
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = times(dir, name, h)
	}
	return err
}

func unpackDir(dir *os.Root, name string) error {
	err := dir.Mkdir(name, 0o700)
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	fi, err := dir.Lstat(name)
	if err != nil || fi.IsDir() {
		return err
	}
	if err := dir.Remove(name); err != nil {
		return err
	}
	return dir.Mkdir(name, 0o700)
}

func attributes(dir *os.Root, name string, h *tar.Header) error {
	err := chown(dir, name, h)
	if err == nil {
		err = dir.Chmod(name, fileMode(h))
	}
	if err == nil {
		err = times(dir, name, h)
	}
	return err
}

func chown(dir *os.Root, name string, h *tar.Header) error {
	return ignoreOwner(dir.Lchown(name, h.Uid, h.Gid))
}

func times(dir *os.Root, name string, h *tar.Header) error {
	if h.ModTime.IsZero() || h.ModTime.Unix() == 0 {
		return nil // a header without a time
	}
	return dir.Chtimes(name, h.ModTime, h.ModTime)
}

// ignoreOwner lets owners be where they cannot be given: without root, and in
// a user namespace that does not map them.
func ignoreOwner(err error) error {
	if errors.Is(err, unix.EINVAL) || (errors.Is(err, unix.EPERM) && os.Geteuid() != 0) {
		return nil
	}
	return err
}

func fileMode(h *tar.Header) os.FileMode {
	m := os.FileMode(h.Mode) & os.ModePerm
	for bit, mode := range map[int64]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if h.Mode&bit != 0 {
			m |= mode
		}
	}
	return m
}
