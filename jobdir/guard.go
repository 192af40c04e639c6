package jobdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/procid"
)

// GuardFile is the name of the file in a job directory that says who writes
// there. It is a file, for Harbor takes directories for trials, and it is there
// only while somebody does.
const GuardFile = "proctor.lock"

// Holder says who holds a guard.
type Holder struct {
	Owner procid.ID `json:"owner"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"` // UTC
}

// Guard keeps others from writing to a job directory.
type Guard struct {
	path string
	lock *flock.Flock
}

// InUseError is the error of a job directory that another process writes to.
type InUseError struct {
	Dir string
	// Holder is nil when it is not known.
	Holder *Holder
}

func (e *InUseError) Error() string {
	who := "another proctor"
	if h := e.Holder; h != nil {
		who = fmt.Sprintf("proctor with pid %d on host %q, since %s,", h.Owner.PID, h.Host, h.Since.Format(time.RFC3339))
	}
	return fmt.Sprintf("job directory %q is in use: %s writes to it", e.Dir, who)
}

// Acquire guards a job directory, which must be there, until Release. The
// guard of a dead process is ignored. While another process holds
// it the error is an *InUseError.
func Acquire(dir string, who Holder) (*Guard, error) {
	path := filepath.Join(dir, GuardFile)
	if err := bounded.CheckOwn(dir, GuardFile); err != nil {
		return nil, fmt.Errorf("guarding job directory %q: %w", dir, err)
	}
	for {
		g, again, err := tryAcquire(dir, path, who)
		if !again {
			return g, err
		}
	}
}

// tryAcquire asks to be called again when the file was removed by its holder
// meanwhile.
func tryAcquire(dir, path string, who Holder) (g *Guard, again bool, err error) {
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))
	got, err := lock.TryLock()
	switch {
	case err != nil && cannotLock(err):
		// The file alone must do: its writer is asked for.
		if holder := readHolder(path); holder != nil && holder.lives(who.Host) {
			return nil, false, errors.Join(&InUseError{dir, holder}, lock.Close())
		}
	case err != nil:
		return nil, false, fmt.Errorf("guarding job directory %q: %w", dir, errors.Join(err, lock.Close()))
	case !got:
		return nil, false, errors.Join(&InUseError{dir, readHolder(path)}, lock.Close())
	case !stillNamed(lock, path):
		if err := lock.Close(); err != nil {
			return nil, true, fmt.Errorf("guarding job directory %q: %w", dir, err)
		}
		return nil, true, nil
	}
	g = &Guard{path, lock}
	data, err := json.Marshal(who)
	if err == nil {
		err = os.WriteFile(path, append(data, '\n'), 0o644)
	}
	if err != nil {
		return nil, false, fmt.Errorf("guarding job directory %q: %w", dir, errors.Join(err, g.Release()))
	}
	return g, false, nil
}

// cannotLock tells that a file system knows no locks.
func cannotLock(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK)
}

// stillNamed reports whether the locked file is the one that path names.
func stillNamed(lock *flock.Flock, path string) bool {
	held, err := lock.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(held, named)
}

// ReadHolder says who writes to a job directory, for those who only read there. It is nil
// where nobody does: there is no guard, or that of a process that has ended. host is the
// reader's, as [Holder] has it: a process of another one counts as living.
func ReadHolder(dir, host string) *Holder {
	if h := readHolder(filepath.Join(dir, GuardFile)); h != nil && h.lives(host) {
		return h
	}
	return nil
}

// lives reports whether the holder may still be there: what cannot be asked on
// this host counts as living.
func (h *Holder) lives(host string) bool { return h.Host != host || h.Owner.Alive() }

// readHolder is nil when the file does not say.
func readHolder(path string) *Holder {
	data, err := bounded.ReadIn(filepath.Dir(path), filepath.Base(path), maxHolder)
	var h Holder
	if err != nil || json.Unmarshal(data, &h) != nil || h.Owner.PID == 0 {
		return nil
	}
	return &h
}

// maxHolder bounds what is read of a guard, in bytes.
const maxHolder = 4 << 10

// Release lets others write to the directory. It may be called again.
func (g *Guard) Release() error {
	if g == nil || g.path == "" {
		return nil
	}
	if g.lock.Locked() && !stillNamed(g.lock, g.path) {
		// The directory was moved away: what is at its name now is somebody else's.
		g.path = ""
		return errors.Join(g.lock.Close())
	}
	// Removed while it is held: who waits for it finds that it is another file.
	// Some systems want it the other way round.
	err := os.Remove(g.path)
	closeErr := g.lock.Close()
	if err != nil {
		err = os.Remove(g.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	g.path = ""
	return errors.Join(err, closeErr)
}
