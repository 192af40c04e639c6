package rootplan

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/sandbox/internal/mountinfo"
	"github.com/proctor-run/proctor/sandbox/internal/rootfs"
)

// host is the part of the host that planning looks at.
type host struct {
	files  fs.ReadLinkFS // "/"
	mounts []mountinfo.Mount
	// locked: the plan is carried out in a user namespace. There a directory
	// can be put into an overlay only if nothing is mounted below it, and
	// what belongs to unmapped users can only be replaced, not changed.
	locked bool
}

// written are directories that commands running as root commonly put files
// into. In a user namespace the host's belong to nobody.
var written = []string{
	"/etc", "/etc/profile.d", "/opt", "/srv", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/local/etc",
	"/usr/local/include", "/usr/local/lib", "/usr/local/sbin", "/usr/local/share", "/usr/share",
	"/var", "/var/cache", "/var/lib", "/var/spool", "/var/www",
}

// copyLimit bounds a file that is copied into a skeleton.
const copyLimit = 1 << 20

// Host lays out backend host's root: of this machine's root what is listed and what
// show names, without what lies below one of extra or of the paths that are masked, and
// with what fresh has on top. Paths in extra and show are absolute. Locked says that
// the plan is carried out in a user namespace.
func Host(extra, show []string, locked bool, fresh func(rootfs.Attributes) rootfs.Tree) (*Plan, error) {
	mounts, err := mountinfo.Read()
	if err != nil {
		return nil, err
	}
	files, err := hostFiles()
	if err != nil {
		return nil, err
	}
	h := host{files: files, mounts: mounts, locked: locked}
	p := hostPlanner{host: h}
	return planHost(h, extra, show, fresh(p.below))
}

// CheckShow refuses paths that Host would refuse to show.
func CheckShow(extra, show []string) error {
	files, err := hostFiles()
	if err != nil {
		return err
	}
	_, err = showable(files, show, extra)
	return err
}

func hostFiles() (fs.ReadLinkFS, error) {
	files, ok := os.DirFS("/").(fs.ReadLinkFS)
	if !ok {
		return nil, errors.New("the host's file system cannot be read")
	}
	return files, nil
}

// planHost is Host for any host.
func planHost(h host, extra, show []string, fresh rootfs.Tree) (*Plan, error) {
	shown, err := showable(h.files, show, extra)
	if err != nil {
		return nil, err
	}
	p := &hostPlanner{host: h, plan: &Plan{fresh: fresh, hide: rootfs.Tree{}}, hidden: map[string]bool{}, shown: shown}
	p.hideUnlisted(unlisted(h.files, shown))
	p.hideMasks(slices.Concat(extra, secretMasks(h.files)), slices.Concat(replaced, homeMasks(h.files)), shown)
	if h.locked {
		p.ownWritten()
	}
	p.cuts = p.findCuts()
	if !p.cutBelow("/") {
		p.addPart("/")
		return p.plan, nil
	}
	p.plan.skeleton = rootfs.Tree{}
	if err := p.split("/"); err != nil {
		return nil, err
	}
	for name, e := range fresh {
		if !p.inPart(name) {
			p.plan.skeleton.Put(name, e, p.below)
		}
	}
	return p.plan, nil
}

// fsName is an absolute path in the words of package fs.
func fsName(name string) string {
	if name == "/" {
		return "."
	}
	return name[1:]
}

type hostPlanner struct {
	host
	plan   *Plan
	hidden map[string]bool   // what is not listed, and resolved masks that exist
	shown  selection         // what the caller asked for
	cuts   []mountinfo.Mount // mounts that have to be parts, or to be left out
}

func (p *hostPlanner) lstat(name string) (fs.FileInfo, error) { return p.files.Lstat(fsName(name)) }

func (p *hostPlanner) below(dir string) (rootfs.Entry, bool) {
	info, err := p.lstat(dir)
	if err != nil || !info.IsDir() {
		return rootfs.Entry{}, false
	}
	return rootfs.Stat(info), true
}

// hideUnlisted hides paths, links themselves and not what they lead to.
func (p *hostPlanner) hideUnlisted(names []string) {
	for _, name := range names {
		p.hidden[name] = true
		p.plan.hide.Whiteout(name, p.below)
	}
	for _, name := range emptied {
		if info, err := p.lstat(name); err == nil && info.IsDir() && p.hidden[name] {
			p.plan.fresh.Put(name, rootfs.Stat(info), p.below)
		}
	}
}

// hideMasks hides what masks name. Those that may yield do so to what of shown is the
// masked path or lies below it, and to nothing else: what is shown of a directory does
// not uncover what is masked in it.
func (p *hostPlanner) hideMasks(firm, yielding []string, shown selection) {
	var resolved []string
	for _, m := range firm {
		if r, ok := resolve(p.files, m); ok && r != "/" {
			resolved = append(resolved, r)
		}
	}
	for _, m := range yielding {
		r, ok := resolve(p.files, m)
		if !ok || r == "/" {
			continue
		}
		switch inside := shown.inside(r); {
		case len(inside) == 0:
			resolved = append(resolved, r)
		case !inside.whole(r):
			p.hideUnlisted(inside.others(p.files, r))
		}
	}
	slices.Sort(resolved) // what holds others comes first
	for _, m := range slices.Compact(resolved) {
		if p.isHidden(m) {
			continue
		}
		p.hidden[m] = true
		p.plan.hide.Whiteout(m, p.below)
		info, err := p.lstat(m)
		if err == nil && info.IsDir() {
			p.plan.fresh.Put(m, rootfs.Stat(info), p.below)
		}
	}
	for account, from := range map[string][2]string{"/etc/shadow": {"etc/passwd", "19000:0:99999:7:::"}, "/etc/gshadow": {"etc/group", ":"}} {
		if p.hidden[account] {
			p.plan.fresh.File(account, 0o640, lockedAccounts(p.files, from[0], from[1]), p.below)
		}
	}
}

// resolve follows the links of an absolute path of the host.
func resolve(files fs.ReadLinkFS, name string) (string, bool) {
	const most = 255 // links, as in the kernel a bound against loops
	done, rest := "/", strings.Split(path.Clean(name)[1:], "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		rest = rest[1:]
		if next == "/" {
			done = next
			continue
		}
		info, err := files.Lstat(fsName(next))
		if err != nil {
			return "", false
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		target, err := files.ReadLink(fsName(next))
		if links++; err != nil || links > most {
			return "", false
		}
		if path.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, true
}

// isHidden reports whether name is masked or lies below a mask.
func (p *hostPlanner) isHidden(name string) bool {
	for ; name != "/"; name = path.Dir(name) {
		if p.hidden[name] {
			return true
		}
	}
	return false
}

// ownWritten makes the merged directories belong to the sandbox's root.
func (p *hostPlanner) ownWritten() {
	for _, dir := range written {
		if e, ok := p.below(dir); ok && !p.isHidden(dir) && !p.plan.fresh.Has(dir) {
			e.UID, e.GID = 0, 0
			p.plan.fresh.Put(dir, e, p.below)
		}
	}
}

// findCuts selects the mount points that a single overlay of "/" cannot deal
// with: all in a user namespace, otherwise those with a part of the system.
func (p *hostPlanner) findCuts() []mountinfo.Mount {
	var cuts []mountinfo.Mount
	for _, m := range p.mounts {
		if m.Path != "/" && (p.locked || (p.partOfSystem(m) && !p.isHidden(m.Path) && p.isDir(m.Path))) {
			cuts = append(cuts, m)
		}
	}
	return cuts
}

func (p *hostPlanner) isDir(name string) bool {
	info, err := p.lstat(name)
	return err == nil && info.IsDir()
}

// partOfSystem recognises mounts that programs of the host need to run, and disks that
// hold what the caller wants shown. Other disks are not shown.
func (p *hostPlanner) partOfSystem(m mountinfo.Mount) bool {
	disks := []string{"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "erofs", "squashfs", "overlay", "virtiofs", "9p"}
	tops := []string{"usr", "var", "opt", "etc", "srv", "nix", "gnu", "bin", "sbin", "lib", "lib32", "lib64"}
	if p.shown.whole(m.Path) || p.shown.partly(m.Path) {
		return slices.Contains(append(disks, "tmpfs", "nfs", "nfs4"), m.Type)
	}
	return slices.Contains(disks, m.Type) && slices.Contains(tops, strings.SplitN(m.Path[1:], "/", 2)[0])
}

func (p *hostPlanner) cutBelow(dir string) bool {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	return slices.ContainsFunc(p.cuts, func(m mountinfo.Mount) bool { return strings.HasPrefix(m.Path, prefix) })
}

func (p *hostPlanner) cutAt(dir string) (m mountinfo.Mount, ok bool) {
	for _, c := range p.cuts {
		if c.Path == dir { // the last one mounted is the one seen
			m, ok = c, true
		}
	}
	return m, ok
}

func (p *hostPlanner) addPart(dir string) {
	e, ok := p.plan.fresh[dir]
	if !ok {
		e, _ = p.below(dir)
	}
	p.plan.parts = append(p.plan.parts, rootfs.Part{Path: dir, Lower: []string{dir}, Mode: e.Mode, UID: e.UID, GID: e.GID})
}

func (p *hostPlanner) inPart(name string) bool {
	return slices.ContainsFunc(p.plan.parts, func(pt rootfs.Part) bool {
		return name == pt.Path || strings.HasPrefix(name, pt.Path+"/")
	})
}

// split puts the entries of dir into the skeleton one by one.
func (p *hostPlanner) split(dir string) error {
	e, _ := p.below(dir)
	e.Kind = fs.ModeDir
	p.plan.skeleton.Put(dir, e, p.below)
	list, err := fs.ReadDir(p.files, fsName(dir))
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %q: %w", dir, err)
	}
	for _, d := range list {
		if err := p.place(path.Join(dir, d.Name())); err != nil {
			return err
		}
	}
	return nil
}

// place decides about one file in a directory that is split.
func (p *hostPlanner) place(name string) error {
	info, err := p.lstat(name)
	if err != nil || p.hidden[name] {
		return nil // gone, or replaced by fresh
	}
	e := rootfs.Stat(info)
	switch {
	case e.Kind == fs.ModeSymlink:
		target, err := p.files.ReadLink(fsName(name))
		if err == nil {
			e.Data = []byte(target)
			p.plan.skeleton.Put(name, e, p.below)
		}
	case e.Kind == 0:
		if data, ok := p.small(name, info); ok {
			e.Data = data
			p.plan.skeleton.Put(name, e, p.below)
		}
	case e.Kind != fs.ModeDir: // sockets, pipes and devices belong to the host
	default:
		return p.placeDir(name, e)
	}
	return nil
}

func (p *hostPlanner) placeDir(name string, e rootfs.Entry) error {
	p.plan.skeleton.Put(name, e, p.below)
	m, mounted := p.cutAt(name)
	if mounted && !p.partOfSystem(m) {
		return nil
	}
	if p.cutBelow(name) {
		return p.split(name)
	}
	if p.locked && !p.readable(name) {
		return nil
	}
	p.addPart(name)
	return nil
}

func (p *hostPlanner) readable(dir string) bool {
	f, err := p.files.Open(fsName(dir))
	if err != nil {
		return false
	}
	return f.Close() == nil
}

func (p *hostPlanner) small(name string, info fs.FileInfo) ([]byte, bool) {
	if info.Size() > copyLimit {
		return nil, false
	}
	f, err := p.files.Open(fsName(name))
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, copyLimit))
	return data, err == nil
}
