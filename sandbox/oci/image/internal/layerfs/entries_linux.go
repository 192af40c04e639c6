package layerfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
)

func (u *unpacker) fileEntry(at place, hdr *tar.Header, content io.Reader) error {
	// Holes count: a sparse header of a few bytes can promise exabytes.
	if hdr.Size > u.limits.Bytes-u.info.Notes.Bytes {
		return fmt.Errorf("%w: more than %d bytes of content", blob.ErrLimit, u.limits.Bytes)
	}
	fd, err := u.create(at)
	if err != nil {
		return err
	}
	n, err := u.copy(fd, content, isSparse(hdr))
	u.info.Notes.Bytes += n
	if err == nil {
		err = u.setAll(fd, hdr)
	}
	if closing := unix.Close(fd); closing != nil && err == nil {
		err = fmt.Errorf("writing a file: %w", closing)
	}
	if err != nil {
		return err
	}
	return u.setTime(at, hdr.ModTime)
}

// create makes a new empty file, replacing what an earlier entry put there.
func (u *unpacker) create(at place) (int, error) {
	const flags = unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(at.dir.fd, at.base, flags, 0o600)
	if errors.Is(err, unix.EEXIST) {
		if err := u.clear(at, false); err != nil {
			return -1, err
		}
		fd, err = unix.Openat(at.dir.fd, at.base, flags, 0o600)
	}
	if err != nil {
		return -1, fmt.Errorf("creating a file: %w", err)
	}
	return fd, nil
}

func isSparse(hdr *tar.Header) bool {
	if hdr.Typeflag == tar.TypeGNUSparse {
		return true
	}
	for key := range hdr.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// copy writes a file's content; of a sparse file it leaves out what is zero.
func (u *unpacker) copy(fd int, content io.Reader, sparse bool) (int64, error) {
	var n int64
	for {
		k, err := fill(content, u.buf)
		if k > 0 && (!sparse || !allZero(u.buf[:k])) {
			if err := writeAt(fd, u.buf[:k], n); err != nil {
				return n, err
			}
		}
		n += int64(k)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, malformed(err)
		}
	}
	if !sparse {
		return n, nil
	}
	if err := unix.Ftruncate(fd, n); err != nil {
		return n, fmt.Errorf("writing a file: %w", err)
	}
	return n, nil
}

// fill reads until the buffer is full, and returns errors as they come: an end
// that was not expected is the archive's own.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var k int
		k, err = r.Read(buf[n:])
		n += k
	}
	return n, err
}

func writeAt(fd int, data []byte, offset int64) error {
	for len(data) > 0 {
		n, err := unix.Pwrite(fd, data, offset)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("writing a file: %w", err)
		}
		data, offset = data[n:], offset+int64(n)
	}
	return nil
}

func allZero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

func (u *unpacker) symlinkEntry(at place, hdr *tar.Header) error {
	if hdr.Linkname == "" || strings.ContainsRune(hdr.Linkname, 0) {
		return fmt.Errorf("%w: link to %q", blob.ErrMalformed, shorten(hdr.Linkname))
	}
	if len(hdr.Linkname) > maxPath {
		return fmt.Errorf("%w: link to a name of %d bytes, at most %d", blob.ErrLimit, len(hdr.Linkname), maxPath)
	}
	// Where the link leads is of no concern: nothing is ever written through
	// it but what walk resolves inside the layer.
	if err := u.clear(at, false); err != nil {
		return err
	}
	if err := unix.Symlinkat(hdr.Linkname, at.dir.fd, at.base); err != nil {
		return fmt.Errorf("making a symbolic link: %w", err)
	}
	if err := u.chownAt(at, hdr); err != nil {
		return err
	}
	return u.setTime(at, hdr.ModTime)
}

// linkEntry makes a hard link to an earlier entry of the layer. The target is
// resolved inside the layer, and is not followed when it is a link itself.
func (u *unpacker) linkEntry(at place, hdr *tar.Header) error {
	rel, err := u.clean(hdr.Linkname)
	if err != nil {
		return fmt.Errorf("hard link to %q: %w", shorten(hdr.Linkname), err)
	}
	if rel == "" {
		return fmt.Errorf("hard link to the root: %w", blob.ErrMalformed)
	}
	parent, base := path.Split(rel)
	// The parents of the link itself were opened before; hold on to the name,
	// because the walk may close them.
	dirPath := at.dir.path
	from, err := u.tree.walk(strings.TrimSuffix(parent, "/"), false)
	if err != nil {
		return fmt.Errorf("hard link to %q: %w", shorten(hdr.Linkname), missing(err))
	}
	target := place{dir: from, base: base}
	targetPath := target.path()
	if u.devices[targetPath] && !target.exists() {
		u.info.Notes.Devices++
		return u.remember(u.devices, join(dirPath, at.base))
	}
	if targetPath == join(dirPath, at.base) {
		return nil
	}
	// Both directories must be open at once.
	fromFD, err := unix.FcntlInt(uintptr(from.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making a hard link: %w", err)
	}
	defer func() { _ = unix.Close(fromFD) }()
	if at.dir, err = u.tree.open(dirPath); err != nil {
		return err
	}
	return u.link(fromFD, base, at, hdr.Linkname)
}

func (u *unpacker) link(fromFD int, base string, at place, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(fromFD, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("hard link to %q: %w", shorten(name), missing(err))
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR || isWhiteoutStat(&st) {
		return fmt.Errorf("hard link to %q: %w: not a file", shorten(name), blob.ErrMalformed)
	}
	if err := u.clear(at, false); err != nil {
		return err
	}
	if err := unix.Linkat(fromFD, base, at.dir.fd, at.base, 0); err != nil {
		return fmt.Errorf("hard link to %q: %w", shorten(name), missing(err))
	}
	return nil
}

// missing says of a link whose target is not in the layer what is wrong.
func missing(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w: no such entry before it in the layer", blob.ErrMalformed)
	}
	return err
}

func (u *unpacker) fifoEntry(at place, hdr *tar.Header) error {
	if err := u.clear(at, false); err != nil {
		return err
	}
	if err := unix.Mknodat(at.dir.fd, at.base, unix.S_IFIFO|0o600, 0); err != nil {
		return fmt.Errorf("making a named pipe: %w", err)
	}
	if err := u.chownAt(at, hdr); err != nil {
		return err
	}
	if err := unix.Fchmodat(at.dir.fd, at.base, uint32(hdr.Mode)&0o7777, 0); err != nil {
		return fmt.Errorf("making a named pipe: %w", err)
	}
	return u.setTime(at, hdr.ModTime)
}

// deviceEntry leaves a device out, and what an earlier entry had in its place.
func (u *unpacker) deviceEntry(at place) error {
	if err := u.clear(at, false); err != nil {
		return err
	}
	u.info.Notes.Devices++
	return u.remember(u.devices, at.path())
}

// setAll sets what an entry says about an open file. The order matters:
// changing the owner clears setuid bits and capabilities.
func (u *unpacker) setAll(fd int, hdr *tar.Header) error {
	if err := u.setOwner(fd, hdr.Uid, hdr.Gid); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, uint32(hdr.Mode)&0o7777); err != nil {
		return fmt.Errorf("setting the mode: %w", err)
	}
	return u.setXattrs(fd, hdr)
}

// setDirAttrs sets the mode last: it may forbid the rest.
func (u *unpacker) setDirAttrs(fd int, a dirAttrs) error {
	if err := u.setOwner(fd, a.uid, a.gid); err != nil {
		return err
	}
	ts := timespec(a.mtime)
	if err := unix.UtimesNanoAt(fd, ".", []unix.Timespec{ts, ts}, 0); err != nil {
		return fmt.Errorf("setting the time: %w", err)
	}
	if err := unix.Fchmod(fd, a.mode); err != nil {
		return fmt.Errorf("setting the mode: %w", err)
	}
	return nil
}

// ownerError decides what a refused change of owner means. In a user namespace
// only some ids exist; then the file keeps its owner and the notes count it.
func (u *unpacker) ownerError(err error) error {
	if err == nil {
		return nil
	}
	if u.format == User && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL)) {
		u.info.Notes.ForeignOwners++
		return nil
	}
	return fmt.Errorf("setting the owner: %w", err)
}

func (u *unpacker) setOwner(fd, uid, gid int) error {
	if !u.chown {
		u.noteOwner(uid, gid)
		return nil
	}
	if u.ours && uid == os.Geteuid() && gid == os.Getegid() {
		return nil
	}
	return u.ownerError(unix.Fchown(fd, uid, gid))
}

func (u *unpacker) chownAt(at place, hdr *tar.Header) error {
	if !u.chown {
		u.noteOwner(hdr.Uid, hdr.Gid)
		return nil
	}
	if u.ours && hdr.Uid == os.Geteuid() && hdr.Gid == os.Getegid() {
		return nil
	}
	return u.ownerError(unix.Fchownat(at.dir.fd, at.base, hdr.Uid, hdr.Gid, unix.AT_SYMLINK_NOFOLLOW))
}

// noteOwner counts entries that a user namespace with one id shows as root's
// though they are not.
func (u *unpacker) noteOwner(uid, gid int) {
	if uid != 0 || gid != 0 {
		u.info.Notes.ForeignOwners++
	}
}

// paxXattr begins the PAX records that carry extended attributes.
const paxXattr = "SCHILY.xattr."

// setXattrs sets the attributes that may come from a stranger: those of users,
// and as root file capabilities. Those of overlay file systems would let a layer
// redirect lookups, those of security modules belong to the host.
func (u *unpacker) setXattrs(fd int, hdr *tar.Header) error {
	for key, value := range hdr.PAXRecords {
		name, ok := strings.CutPrefix(key, paxXattr)
		if !ok {
			continue
		}
		if len(value) > maxXattr {
			return fmt.Errorf("%w: attribute of %d bytes, at most %d", blob.ErrLimit, len(value), maxXattr)
		}
		if !u.allowedXattr(name) {
			u.info.Notes.Xattrs++
			continue
		}
		err := unix.Fsetxattr(fd, name, []byte(value), 0)
		switch {
		case err == nil:
		case errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EPERM), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ERANGE):
			u.info.Notes.Xattrs++
		default:
			return fmt.Errorf("setting attribute %q: %w", shorten(name), err)
		}
	}
	return nil
}

func (u *unpacker) allowedXattr(name string) bool {
	if name == "security.capability" {
		return u.chown && u.format == Trusted
	}
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.")
}

// timespec falls back to the epoch for times that no file system can keep.
func timespec(t time.Time) unix.Timespec {
	ts, err := unix.TimeToTimespec(t)
	if err != nil || t.IsZero() {
		return unix.Timespec{}
	}
	return ts
}

func (u *unpacker) setTime(at place, mtime time.Time) error {
	ts := timespec(mtime)
	if err := unix.UtimesNanoAt(at.dir.fd, at.base, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("setting the time: %w", err)
	}
	return nil
}
