package environment

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/proctor-run/proctor/internal/bounded"
)

// namedMost is how many files are named; of the others the number is told.
const namedMost = 20

// Disarmed is what [Disarm] did, and what it could not do.
type Disarmed struct {
	// Removed are what is neither a file nor a directory nor a link, by name and
	// kind; Changed are the files that had a set-ID bit.
	Removed, Changed Listed
	// Left are what could not be made harmless, by name and reason. Nobody but the
	// owner should be let into the directory then.
	Left Listed
}

// Listed are some of many lines.
type Listed struct {
	Lines []string // the first ones
	Total int
}

func (l *Listed) add(format string, args ...any) {
	if l.Total++; len(l.Lines) < namedMost {
		l.Lines = append(l.Lines, fmt.Sprintf(format, args...))
	}
}

// String joins the lines, and says how many more there are.
func (l Listed) String() string {
	text := strings.Join(l.Lines, ", ")
	if more := l.Total - len(l.Lines); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Disarm takes from the files that sandboxes left in a directory of this machine, at
// any depth, what gives somebody rights or makes somebody wait: device nodes, pipes and
// sockets are removed, set-user-ID, set-group-ID and sticky bits and the capabilities of
// files are taken away, and nobody but the owner may write. The owner becomes the user
// that proctor runs as, where that user may say so. Links stay as they are and are not
// followed. It is for when no sandbox runs any more that could write there.
func Disarm(dir string) Disarmed {
	var d disarming
	bounded.Walk(dir, d.entry, d.left)
	return d.done
}

type disarming struct{ done Disarmed }

func (d *disarming) entry(p bounded.Place, e fs.DirEntry) error {
	info, err := p.Root.Lstat(e.Name())
	if err != nil {
		return err
	}
	if err := d.disarm(p, e.Name(), info); err != nil || !info.IsDir() {
		return err
	}
	return p.Enter(e.Name())
}

func (d *disarming) left(name string, err error) {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	d.done.Left.add("%q: %v", name, err)
}

const (
	setID  = fs.ModeSetuid | fs.ModeSetgid
	others = 0o022 // the right to write, for all but the owner
)

func (d *disarming) disarm(p bounded.Place, base string, info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case mode.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0:
		if err := p.Root.Remove(base); err != nil {
			return err
		}
		d.done.Removed.add("%q (%s)", p.Name(base), bounded.Kind(mode))
		return nil
	case mode.Type() == fs.ModeSymlink:
		return own(p.Root, base, info)
	}
	if mode.IsRegular() && mode&setID != 0 {
		d.done.Changed.add("%q", p.Name(base))
	}
	if err := own(p.Root, base, info); err != nil {
		return err
	}
	want := mode.Perm() &^ others
	if mode.IsDir() {
		want |= 0o700 // to be read and removed by its owner
	}
	if mode&(fs.ModePerm|setID|fs.ModeSticky) == want {
		return nil
	}
	return p.Root.Chmod(base, want)
}
