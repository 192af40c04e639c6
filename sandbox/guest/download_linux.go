package guest

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

// download sends p as a tar stream. Links are not followed from p on; what
// vanishes meanwhile is left out; pipes, sockets and devices are left out.
func (s *server) download(c *service, p string) error {
	if !path.IsAbs(p) {
		return fmt.Errorf("%q is not an absolute path", p)
	}
	p = path.Clean(p)
	fi, err := os.Lstat(p)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("%w: %q", errMissing, p)
	}
	if err != nil {
		return err
	}
	out := newCallWriter(s, c, frames.MaxFiles)
	w := packer{tw: tar.NewWriter(out), buf: make([]byte, frames.MaxFiles)}
	if fi.IsDir() {
		err = w.from(p, func() error { return w.dir(".") })
	} else {
		err = w.from(path.Dir(p), func() error { return w.entry(path.Base(p)) })
	}
	if err != nil {
		return err
	}
	if err = w.tw.Close(); err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	return nil
}

// callWriter sends data to the client in frames, as far as it has granted it.
type callWriter struct {
	s *server
	c *service
	p frames.Packet
	n int // how many bytes of the packet are filled in
}

// newCallWriter sends at most so many bytes in a frame.
func newCallWriter(s *server, c *service, most int) *callWriter {
	return &callWriter{s: s, c: c, p: frames.NewPacket(most)}
}

func (w *callWriter) room() []byte { return w.p.Space(cap(w.p) - frames.HeaderSize)[w.n:] }

func (w *callWriter) Write(p []byte) (int, error) {
	written := 0
	for {
		n := copy(w.room(), p[written:])
		w.n += n
		written += n
		if written == len(p) {
			return written, nil
		}
		if err := w.Flush(); err != nil {
			return written, err
		}
	}
}

// Flush sends what was written.
func (w *callWriter) Flush() error {
	for w.n > 0 {
		n := w.c.credit.Take(w.n, w.c.canceled, nil)
		if n == 0 {
			return errCanceled
		}
		if err := w.s.w.SendPacket(repStdout, w.c.id, w.p, n); err != nil {
			return err
		}
		w.n = copy(w.p.Space(w.n), w.p.Space(w.n)[n:])
	}
	return nil
}

// packer writes what lies below a directory as a tar stream.
type packer struct {
	way *bounded.Way // to the directory whose entries are written
	tw  *tar.Writer
	buf []byte
}

// from has pack write what is in or below a directory.
func (w *packer) from(dir string, pack func() error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	w.way = bounded.NewWay(root)
	defer w.way.Close()
	return pack()
}

// ofKernel reports whether a directory lies in a file system that is a view of
// the kernel, such as /proc: what is there is no file of the sandbox.
func ofKernel(dir *os.File) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(int(dir.Fd()), &st) != nil {
		return false
	}
	switch st.Type {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
		unix.DEVPTS_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC:
		return true
	}
	return false
}

// dir writes the content of the directory at hand, whose name is dir, in the order
// of names. File systems of the kernel below the one that was asked for are empty
// directories.
func (w *packer) dir(dir string) error {
	names, err := w.names(dir == ".")
	if err != nil {
		return ignoreVanished(err)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.entry(path.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// names lists the directory at hand.
func (w *packer) names(first bool) ([]string, error) {
	here, err := w.way.Here()
	if err != nil {
		return nil, err
	}
	f, err := here.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if !first && ofKernel(f) {
		return nil, nil
	}
	return f.Readdirnames(-1)
}

// entry writes an entry of the directory at hand and, for a directory, what is in it.
func (w *packer) entry(name string) error {
	if err := bounded.CheckPath(name); err != nil {
		return err
	}
	base := path.Base(name)
	here, err := w.way.Here()
	if err != nil {
		return ignoreVanished(err)
	}
	fi, err := here.Lstat(base)
	if err != nil {
		return ignoreVanished(err)
	}
	h := header(fi, name)
	switch fi.Mode().Type() {
	case os.ModeDir:
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		if err := w.tw.WriteHeader(h); err != nil {
			return fmt.Errorf("packing %q: %w", name, err)
		}
		if err := w.way.Enter(base); err != nil {
			return ignoreVanished(err)
		}
		defer w.way.Leave()
		return w.dir(name)
	case os.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = here.Readlink(base); err != nil {
			return ignoreVanished(err)
		}
		if err := w.tw.WriteHeader(h); err != nil {
			return fmt.Errorf("packing %q: %w", name, err)
		}
		return nil
	case 0:
		return w.file(here, fi, h)
	default:
		return nil
	}
}

// file writes as many bytes as the header says, also when the file grows or
// shrinks meanwhile.
func (w *packer) file(dir *os.Root, fi os.FileInfo, h *tar.Header) error {
	f, err := dir.OpenFile(fi.Name(), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return ignoreVanished(err)
	}
	defer func() { _ = f.Close() }()
	if now, err := f.Stat(); err != nil || !os.SameFile(now, fi) {
		return err // another one has taken its place
	}
	h.Typeflag, h.Size = tar.TypeReg, fi.Size()
	if err := w.tw.WriteHeader(h); err != nil {
		return fmt.Errorf("packing %q: %w", h.Name, err)
	}
	n, err := bounded.CopyBuffer(w.tw, io.LimitReader(f, h.Size), w.buf)
	if err == nil {
		_, err = bounded.CopyBuffer(w.tw, io.LimitReader(zeros{}, h.Size-n), w.buf)
	}
	if err != nil {
		return fmt.Errorf("packing %q: %w", h.Name, err)
	}
	return nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// header has what is common to all types. Names of users are left out: they
// are the sandbox's, the numbers count.
func header(fi os.FileInfo, name string) *tar.Header {
	h := &tar.Header{Name: strings.TrimPrefix(name, "./"), Mode: int64(fi.Mode().Perm()), ModTime: fi.ModTime().Truncate(time.Second)}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		h.Uid, h.Gid = int(st.Uid), int(st.Gid)
		h.Mode = int64(st.Mode & 0o7777)
	}
	return h
}

func ignoreVanished(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return err
}
