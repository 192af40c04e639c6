package layerfs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
)

// unpacker turns the entries of one layer into files below a directory that
// nobody else writes to. Every change is made relative to a directory that was
// reached from the layer's root component by component without following links
// (see walk), under a final name that is never followed: nothing a layer says
// can reach outside.
type unpacker struct {
	tree   *tree
	format Format
	chown  bool
	ours   bool // new files belong to this process's user and group
	limits Limits
	info   Found

	// What is to be set on directories at the end, when nothing is written
	// into them any more, by resolved path.
	dirs map[string]dirAttrs
	// Directories made only as parents.
	implicit map[string]bool
	// Whiteouts that this layer made.
	whiteouts map[string]bool
	// Device nodes that were not created, because hard links may name them.
	devices map[string]bool
	// Bytes of the names in the maps above: hostile names are long.
	remembered int
	// Directories with content that gave way to files; each costs a look at
	// all maps.
	replaced int

	buf []byte
}

type dirAttrs struct {
	mode     uint32
	uid, gid int
	mtime    time.Time
}

// Bounds on what hostile layers cost: memory for names, and time.
const (
	maxRemembered = 256 << 20
	maxReplaced   = 4096
)

// Unpack reads a layer's tar to its end mark and makes its files in dir, which
// exists and is empty. After an error dir is in no defined state.
func Unpack(ctx context.Context, dir string, layer io.Reader, f Format, limits Limits) (info Found, err error) {
	t, err := openTree(dir)
	if err != nil {
		return Found{}, fmt.Errorf("unpacking a layer: %w", err)
	}
	defer func() { err = errors.Join(err, t.close()) }()
	u := &unpacker{
		tree:      t,
		format:    f,
		chown:     os.Geteuid() == 0,
		limits:    limits,
		dirs:      map[string]dirAttrs{"": {mode: 0o755}},
		implicit:  map[string]bool{},
		whiteouts: map[string]bool{},
		devices:   map[string]bool{},
		buf:       make([]byte, 256<<10),
	}
	t.make = u.makeParent
	if u.ours, err = ownsNew(t.top.fd); err != nil {
		return Found{}, fmt.Errorf("unpacking a layer: %w", err)
	}
	tr := tar.NewReader(layer)
	for {
		if ctx.Err() != nil {
			return Found{}, context.Cause(ctx)
		}
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Found{}, malformed(err)
		}
		if err := u.entry(hdr, tr); err != nil {
			return Found{}, &EntryError{Entry: shorten(hdr.Name), Err: err}
		}
	}
	if err := u.finish(); err != nil {
		return Found{}, fmt.Errorf("unpacking a layer: %w", err)
	}
	return u.info, nil
}

// ownsNew reports whether what is made in a directory has the owner of the
// process: neither does the directory hand its group down, nor the file system.
func ownsNew(dir int) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return false, fmt.Errorf("looking at the layer's directory: %w", err)
	}
	return int(st.Uid) == os.Geteuid() && int(st.Gid) == os.Getegid() && st.Mode&unix.S_ISGID == 0, nil
}

// malformed distinguishes errors of the archive's form from those of reading it.
func malformed(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", blob.ErrMalformed, err)
	}
	return fmt.Errorf("reading a layer: %w", err)
}

// errUnsafe marks an entry that would reach out of the layer.
var errUnsafe = errors.New("entry leads out of the layer")

func shorten(name string) string {
	const most = 200
	if len(name) > most {
		return name[:most] + "…"
	}
	return name
}

// entry makes one entry of the archive.
func (u *unpacker) entry(hdr *tar.Header, content io.Reader) error {
	if err := u.countEntry(); err != nil {
		return err
	}
	if hdr.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	rel, err := u.clean(hdr.Name)
	if err != nil {
		return err
	}
	if rel == "" {
		return u.rootEntry(hdr)
	}
	if !isOwner(hdr.Uid) || !isOwner(hdr.Gid) {
		return fmt.Errorf("%w: owner %d:%d", blob.ErrMalformed, hdr.Uid, hdr.Gid)
	}
	parent, base := path.Split(rel)
	if strings.HasPrefix(base, whiteoutPrefix) {
		return u.whiteoutEntry(strings.TrimSuffix(parent, "/"), base)
	}
	dir, err := u.tree.walk(strings.TrimSuffix(parent, "/"), true)
	if err != nil {
		return err
	}
	return u.make(place{dir: dir, base: base}, hdr, content)
}

// isOwner: the largest id stands for "no change" in calls that set owners.
func isOwner(id int) bool { return id >= 0 && int64(id) < 1<<32-1 }

func (u *unpacker) make(at place, hdr *tar.Header, content io.Reader) error {
	switch hdr.Typeflag {
	case tar.TypeDir:
		return u.dirEntry(at, hdr)
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return u.fileEntry(at, hdr, content)
	case tar.TypeSymlink:
		return u.symlinkEntry(at, hdr)
	case tar.TypeLink:
		return u.linkEntry(at, hdr)
	case tar.TypeFifo:
		return u.fifoEntry(at, hdr)
	case tar.TypeChar, tar.TypeBlock:
		return u.deviceEntry(at)
	default:
		return fmt.Errorf("%w: entry of type %q", blob.ErrMalformed, hdr.Typeflag)
	}
}

// clean turns a name of the archive into a path below the layer's root, "" for
// the root itself. Absolute names count from the root; names that lead out of
// it are refused, not bent.
func (u *unpacker) clean(name string) (string, error) {
	if len(name) > maxPath {
		return "", fmt.Errorf("%w: name of %d bytes, at most %d", blob.ErrLimit, len(name), maxPath)
	}
	if strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%w: zero byte in a name", blob.ErrMalformed)
	}
	rel := path.Clean(strings.TrimLeft(name, "/"))
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return "", errUnsafe
	}
	if rel == "." {
		return "", nil
	}
	depth := 0
	for part := range strings.SplitSeq(rel, "/") {
		depth++
		if len(part) > maxComponent {
			return "", fmt.Errorf("%w: %d bytes between slashes, at most %d", blob.ErrLimit, len(part), maxComponent)
		}
	}
	if depth > u.limits.Depth {
		return "", fmt.Errorf("%w: %d directories deep, at most %d", blob.ErrLimit, depth, u.limits.Depth)
	}
	return rel, nil
}

func (u *unpacker) countEntry() error {
	u.info.Notes.Entries++
	if u.info.Notes.Entries > u.limits.Entries {
		return fmt.Errorf("%w: more than %d entries", blob.ErrLimit, u.limits.Entries)
	}
	return nil
}

func (u *unpacker) remember(set map[string]bool, name string) error {
	set[name] = true
	return u.rememberBytes(name)
}

func (u *unpacker) rememberBytes(name string) error {
	u.remembered += len(name)
	if u.remembered > maxRemembered {
		return fmt.Errorf("%w: names of more than %d bytes in all", blob.ErrLimit, maxRemembered)
	}
	return nil
}

// rootEntry sets attributes of the layer's root directory.
func (u *unpacker) rootEntry(hdr *tar.Header) error {
	if hdr.Typeflag != tar.TypeDir {
		return fmt.Errorf("%w: the root is not a directory", blob.ErrMalformed)
	}
	return u.setDir("", hdr)
}

// makeParent makes a directory that something is to be put into.
func (u *unpacker) makeParent(at place) error {
	if err := u.countEntry(); err != nil {
		return err
	}
	if err := u.mkdir(at); err != nil {
		return err
	}
	name := at.path()
	u.dirs[name] = dirAttrs{mode: 0o755, mtime: time.Unix(0, 0)}
	return errors.Join(u.rememberBytes(name), u.remember(u.implicit, name))
}

// mkdir makes a directory where there is none; over a whiteout of this layer it
// becomes one that hides what lower layers have of that name.
func (u *unpacker) mkdir(at place) error {
	hides := u.whiteouts[at.path()]
	if err := u.clear(at, true); err != nil {
		return err
	}
	err := unix.Mkdirat(at.dir.fd, at.base, 0o700)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	if hides {
		return u.opaque(at.path())
	}
	return nil
}

func (u *unpacker) dirEntry(at place, hdr *tar.Header) error {
	if err := u.mkdir(at); err != nil {
		return err
	}
	name := at.path()
	delete(u.implicit, name)
	return u.setDir(name, hdr)
}

func (u *unpacker) setDir(name string, hdr *tar.Header) error {
	if _, known := u.dirs[name]; !known {
		if err := u.rememberBytes(name); err != nil {
			return err
		}
	}
	u.dirs[name] = dirAttrs{mode: uint32(hdr.Mode) & 0o7777, uid: hdr.Uid, gid: hdr.Gid, mtime: hdr.ModTime}
	d, err := u.tree.open(name)
	if err != nil {
		return err
	}
	return u.setXattrs(d.fd, hdr)
}

// clear makes room for a new entry. An existing directory stays when the new
// entry is one too; anything else is replaced, and never followed.
func (u *unpacker) clear(at place, forDir bool) error {
	var st unix.Stat_t
	err := unix.Fstatat(at.dir.fd, at.base, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lstat target: %w", err)
	}
	name := at.path()
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		delete(u.whiteouts, name)
		if err := unix.Unlinkat(at.dir.fd, at.base, 0); err != nil {
			return fmt.Errorf("replacing an earlier entry: %w", err)
		}
		return nil
	}
	if forDir {
		return nil
	}
	if unix.Unlinkat(at.dir.fd, at.base, unix.AT_REMOVEDIR) == nil {
		delete(u.dirs, name)
		delete(u.implicit, name)
		return u.tree.forget(name)
	}
	if u.replaced++; u.replaced > maxReplaced {
		return fmt.Errorf("%w: more than %d directories replaced by files", blob.ErrLimit, maxReplaced)
	}
	below := func(p string) bool { return p == name || strings.HasPrefix(p, name+"/") }
	for p := range u.dirs {
		if below(p) {
			delete(u.dirs, p)
			delete(u.implicit, p)
		}
	}
	for p := range u.whiteouts {
		if below(p) {
			delete(u.whiteouts, p)
		}
	}
	if err := u.tree.removeAll(name); err != nil {
		return fmt.Errorf("replacing an earlier directory: %w", err)
	}
	return nil
}

// finish sets what directories are to be in the end, children first because a
// parent may forbid the way to them.
func (u *unpacker) finish() error {
	names := make([]string, 0, len(u.dirs))
	for name := range u.dirs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		d, err := u.tree.open(name)
		if err != nil {
			return err
		}
		if err := u.setDirAttrs(d.fd, u.dirs[name]); err != nil {
			return fmt.Errorf("setting attributes of %q: %w", shorten(name), err)
		}
	}
	for name := range u.implicit {
		u.info.Implicit = append(u.info.Implicit, name)
	}
	slices.Sort(u.info.Implicit)
	return nil
}
