package sandbox

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/proctor-run/proctor/internal/bounded"
)

// UploadDir copies the contents of a host directory into dir in the sandbox.
// Modes and symlinks are kept, links are not followed; files belong to root.
// The files named by executable, relative to hostDir with slashes, can be
// executed by everyone in the sandbox whatever their mode on the host; they are
// errors where they are there and are no files. Other pipes, sockets and devices
// have no content and are left out.
func UploadDir(ctx context.Context, sb Sandbox, hostDir, dir string, executable ...string) error {
	return upload(ctx, sb, dir, func(w *tar.Writer) error { return writeTree(w, hostDir, executable) })
}

// UploadFile copies one host file to the path dst in the sandbox; a link on the
// host is followed.
func UploadFile(ctx context.Context, sb Sandbox, hostFile, dst string) error {
	return upload(ctx, sb, path.Dir(dst), func(w *tar.Writer) error {
		f, err := bounded.OpenRegular(hostFile)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		info, err := bounded.Fits(f, bounded.MaxContent)
		if err != nil {
			return err
		}
		return writeFile(w, path.Base(dst), info.Mode().Perm(), info, f)
	})
}

// UploadBytes writes data to the path dst in the sandbox.
func UploadBytes(ctx context.Context, sb Sandbox, data []byte, dst string, mode fs.FileMode) error {
	return upload(ctx, sb, path.Dir(dst), func(w *tar.Writer) error {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: path.Base(dst), Mode: int64(mode.Perm()), Size: int64(len(data))}
		err := w.WriteHeader(h)
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			return fmt.Errorf("packing %q: %w", dst, err)
		}
		return nil
	})
}

// transferred is how much goes from who packs an archive to who sends it at a time, or the
// other way, in bytes.
const transferred = 64 << 10

func upload(ctx context.Context, sb Sandbox, dir string, fill func(*tar.Writer) error) error {
	pr, pw := io.Pipe()
	filled := make(chan error, 1)
	go func() {
		out := bufio.NewWriterSize(pw, transferred)
		w := tar.NewWriter(out)
		err := fill(w)
		if err == nil {
			err = w.Close()
		}
		if err == nil {
			err = out.Flush()
		}
		pw.CloseWithError(err)
		filled <- err
	}()
	err := sb.Upload(ctx, dir, pr)
	pr.CloseWithError(errUploadEnded)
	if fillErr := <-filled; fillErr != nil && !errors.Is(fillErr, errUploadEnded) {
		return fillErr
	}
	return err
}

var errUploadEnded = errors.New("the sandbox stopped reading")

func writeTree(w *tar.Writer, dir string, executable []string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	way := bounded.NewWay(root)
	defer way.Close()
	return writeEntries(w, way, ".", executable)
}

// writeEntries writes what is in the directory at the end of the way, whose name is dir,
// in the order of names.
func writeEntries(w *tar.Writer, way *bounded.Way, dir string, executable []string) error {
	here, err := way.Here()
	if err != nil {
		return err
	}
	entries, err := fs.ReadDir(here.FS(), ".")
	if err != nil {
		return fmt.Errorf("listing %q: %w", dir, err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if err := bounded.CheckPath(name); err != nil {
			return err
		}
		if here, err = way.Here(); err != nil {
			return err
		}
		info, err := here.Lstat(e.Name())
		if err != nil {
			return err
		}
		if err := writeEntry(w, here, name, info, slices.Contains(executable, name)); err != nil {
			return err
		}
		if !info.IsDir() {
			continue
		}
		if err := way.Enter(e.Name()); err != nil {
			return err
		}
		err = writeEntries(w, way, name, executable)
		way.Leave()
		if err != nil {
			return err
		}
	}
	return nil
}

// writeHeader begins an entry of an archive.
func writeHeader(w *tar.Writer, h *tar.Header) error {
	if err := w.WriteHeader(h); err != nil {
		return fmt.Errorf("packing %q: %w", h.Name, err)
	}
	return nil
}

func writeEntry(w *tar.Writer, dir *os.Root, name string, info fs.FileInfo, executable bool) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := dir.Readlink(info.Name())
		if err != nil {
			return err
		}
		return writeHeader(w, &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, ModTime: info.ModTime()})
	case info.Mode().IsRegular() || executable: // which has to be a file
		f, err := bounded.OpenAt(dir, info.Name())
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if info, err = bounded.Fits(f, bounded.MaxContent); err != nil {
			return err
		}
		mode := info.Mode().Perm()
		if executable {
			mode |= 0o111
		}
		return writeFile(w, name, mode, info, f)
	case info.IsDir():
		return writeHeader(w, &tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()})
	}
	return nil // sockets, devices and pipes have no content to copy
}

func writeFile(w *tar.Writer, name string, mode fs.FileMode, info fs.FileInfo, r io.Reader) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode), Size: info.Size(), ModTime: info.ModTime()}
	if err := writeHeader(w, h); err != nil {
		return err
	}
	n, err := bounded.Copy(w, io.LimitReader(r, info.Size()), info.Size())
	if err == nil && n < info.Size() {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("copying %q: %d of %d bytes: %w", name, n, info.Size(), err)
	}
	return nil
}

// DownloadLimits bound what a sandbox may put on the host in one download.
type DownloadLimits struct {
	Bytes   int64 // of all files together
	Entries int
}

// DefaultDownloadLimits are wide enough for any log directory.
var DefaultDownloadLimits = DownloadLimits{Bytes: 16 << 30, Entries: 1 << 20}

// errDownloadTooLarge marks a download beyond its limits. What fits is kept.
var errDownloadTooLarge = errors.New("download exceeds its limits")

// DownloadDir copies the contents of dir in the sandbox into a host directory.
// Nothing is written outside it whatever the sandbox sends, also when the
// sandbox writes to the same directory: links are created only when they stay
// inside, special files not at all.
func DownloadDir(ctx context.Context, sb Sandbox, dir string, host *os.Root, limits DownloadLimits) error {
	return download(ctx, sb, dir, func(r *tar.Reader) error { return extract(r, host, limits) })
}

// DownloadFile copies one file of the sandbox to a name in a host directory.
func DownloadFile(ctx context.Context, sb Sandbox, src string, host *os.Root, name string, limits DownloadLimits) error {
	return download(ctx, sb, src, func(r *tar.Reader) error {
		h, err := r.Next()
		if err != nil {
			return fmt.Errorf("downloading %q: %w", src, err)
		}
		if h.Typeflag != tar.TypeReg {
			return fmt.Errorf("downloading %q: not a regular file", src)
		}
		if h.Size > limits.Bytes {
			return fmt.Errorf("downloading %q: %d bytes: %w", src, h.Size, errDownloadTooLarge)
		}
		return writeHostFile(host, name, h, r)
	})
}

// DownloadBytes returns the content of one file of the sandbox. What is no file, or has
// more than limit bytes, is an error.
func DownloadBytes(ctx context.Context, sb Sandbox, src string, limit int64) (data []byte, err error) {
	err = download(ctx, sb, src, func(r *tar.Reader) error {
		h, err := r.Next()
		if err != nil {
			return fmt.Errorf("downloading %q: %w", src, err)
		}
		if h.Typeflag != tar.TypeReg {
			return fmt.Errorf("downloading %q: %w", src, bounded.ErrNotRegular)
		}
		if data, err = bounded.Read(r, limit); err != nil {
			return fmt.Errorf("downloading %q: %w", src, err)
		}
		return nil
	})
	return data, err
}

func download(ctx context.Context, sb Sandbox, src string, take func(*tar.Reader) error) error {
	pr, pw := io.Pipe()
	taken := make(chan error, 1)
	go func() {
		err := take(tar.NewReader(bufio.NewReaderSize(pr, transferred)))
		if err == nil {
			_, err = io.Copy(io.Discard, pr) // the padding behind the last entry
		}
		pr.CloseWithError(err)
		taken <- err
	}()
	err := sb.Download(ctx, src, pw)
	pw.CloseWithError(err)
	takeErr := <-taken
	if err != nil && !errors.Is(err, takeErr) {
		return err
	}
	return takeErr
}

func extract(r *tar.Reader, root *os.Root, limits DownloadLimits) error {
	way := bounded.NewWay(root)
	defer way.Close()
	for entries := 0; ; entries++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the download: %w", err)
		}
		if entries >= limits.Entries || h.Size > limits.Bytes {
			return fmt.Errorf("%q: %w", h.Name, errDownloadTooLarge)
		}
		limits.Bytes -= h.Size
		if err := extractEntry(root, way, h, r); err != nil {
			return err
		}
	}
}

// extractEntry writes an entry below root. way leads to the directory of the last one.
func extractEntry(root *os.Root, way *bounded.Way, h *tar.Header, r io.Reader) error {
	name := path.Clean(h.Name)
	if name == "." {
		return nil
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("download entry %q leaves its directory", h.Name)
	}
	if err := bounded.CheckPath(name); err != nil {
		return fmt.Errorf("download entry %w", err)
	}
	parent, base := path.Split(name)
	parent = path.Clean(parent)
	dir, err := way.To(parent, 0o755)
	if errors.Is(err, syscall.ENOTDIR) { // a link that was there, which may lead inside root
		way.Close()
		dir, base, err = root, filepath.FromSlash(name), root.MkdirAll(filepath.FromSlash(parent), 0o755)
	}
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return dir.MkdirAll(base, hostMode(h, 0o700))
	case tar.TypeReg:
		return writeHostFile(dir, base, h, r)
	case tar.TypeSymlink:
		if !staysInside(name, h.Linkname) {
			return nil
		}
		if err := dir.Remove(base); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return dir.Symlink(h.Linkname, base)
	}
	return nil
}

// staysInside reports whether a link called name may point to target without
// leaving the directory that both are relative to.
func staysInside(name, target string) bool {
	if path.IsAbs(target) || filepath.IsAbs(target) || strings.ContainsRune(target, '\\') {
		return false
	}
	joined := path.Join(path.Dir(filepath.ToSlash(name)), target)
	return joined != ".." && !strings.HasPrefix(joined, "../")
}

func writeHostFile(root *os.Root, name string, h *tar.Header, r io.Reader) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, hostMode(h, 0o600))
	if err != nil {
		return err
	}
	_, err = bounded.Copy(f, r, h.Size)
	return errors.Join(err, f.Close())
}

// hostMode keeps the permission bits, never setuid and the like, and leaves the
// host's user able to read what was downloaded.
func hostMode(h *tar.Header, atLeast fs.FileMode) fs.FileMode {
	return fs.FileMode(h.Mode).Perm() | atLeast
}
