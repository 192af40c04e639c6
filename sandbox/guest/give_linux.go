package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/bounded"
)

// give changes the owner of a directory and of everything in it. What vanishes
// meanwhile is left out; of what cannot be changed the first is the error, and the
// rest is gone through all the same.
func give(c *service, q ownRequest) error {
	if !path.IsAbs(q.dir) {
		return fmt.Errorf("%q is not an absolute path", q.dir)
	}
	info, err := os.Lstat(q.dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%q is not a directory", q.dir)
	}
	g := giving{call: c, ownRequest: q}
	bounded.Walk(q.dir, g.entry, g.failed)
	if !q.owns(info) {
		if err := os.Lchown(q.dir, q.uid, q.gid); err != nil {
			g.failed(".", err)
		}
	}
	if c.isCanceled() {
		return errCanceled
	}
	return g.first
}

// giving is a walk that changes owners.
type giving struct {
	ownRequest
	call  *service
	first error // of what could not be changed
}

func (g *giving) failed(name string, err error) {
	if g.first == nil && ignoreVanished(err) != nil {
		g.first = fmt.Errorf("%q: %w", path.Join(g.dir, name), err)
	}
}

func (g *giving) entry(p bounded.Place, e fs.DirEntry) error {
	if g.call.isCanceled() {
		return fs.SkipAll
	}
	info, err := p.Root.Lstat(e.Name())
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = p.Enter(e.Name())
	}
	if g.owns(info) {
		return err
	}
	return errors.Join(err, p.Root.Lchown(e.Name(), g.uid, g.gid))
}

func (q ownRequest) owns(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == q.uid && int(st.Gid) == q.gid
}
