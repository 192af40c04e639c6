package sandboxes

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
)

// check makes sure that a backend works here. Trying a steady one costs as much as
// a sandbox, so what worked once is not tried again by the same build and user
// until the machine starts anew; a backend that stops working meanwhile is
// noticed by what runs in it. An engine is asked every time: that is cheap, and
// engines come and go.
func check(ctx context.Context, o Options, b sandbox.Backend) error {
	if e, err := o.Backends.find(b.Name()); err != nil || !e.Steady {
		return errors.Join(err, b.Check(ctx))
	}
	dirs, err := FindDirectories(o.getenv)
	if err != nil {
		return err
	}
	self, err := procid.Self()
	if err != nil {
		return err
	}
	key := fmt.Sprintln(b.Name(), o.Runtime, self.BootID, version.Current().ID(), os.Geteuid(), dirs.State, o.getenv("PATH"))
	marker := filepath.Join(dirs.Cache, "checked", fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:32])
	if _, err := os.Stat(marker); err == nil {
		return nil
	}
	if err := b.Check(ctx); err != nil {
		return err
	}
	// Without the mark the next run tries again.
	if os.MkdirAll(filepath.Dir(marker), 0o755) == nil {
		_ = atomicfile.WriteUnsynced(marker, nil, 0o644)
	}
	return nil
}
