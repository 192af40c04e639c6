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
		return fmt.Errorf("%q is no directory", q.dir)
	}
	var first error
	failed := func(name string, err error) {
		if first == nil && ignoreVanished(err) != nil {
			first = fmt.Errorf("%q: %w", path.Join(q.dir, name), err)
		}
	}
	bounded.Walk(q.dir, func(p bounded.Place, e fs.DirEntry) error {
		select {
		case <-c.canceled:
			return fs.SkipAll
		default:
		}
		info, err := p.Root.Lstat(e.Name())
		if err != nil {
			return err
		}
		if info.IsDir() {
			err = p.Enter(e.Name())
		}
		if q.owns(info) {
			return err
		}
		return errors.Join(err, p.Root.Lchown(e.Name(), q.uid, q.gid))
	}, failed)
	if !q.owns(info) {
		if err := os.Lchown(q.dir, q.uid, q.gid); err != nil {
			failed(".", err)
		}
	}
	select {
	case <-c.canceled:
		return errCanceled
	default:
		return first
	}
}

func (q ownRequest) owns(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == q.uid && int(st.Gid) == q.gid
}
