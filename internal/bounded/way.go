package bounded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

const (
	// maxPath is how many bytes the name of a file below a directory may have: what is
	// called by more, no program opens by one name.
	maxPath = 4095
	// stride of the directories of a [Way] that stay open far above; the stride last ones,
	// at least, are open as well. The deepest way that maxPath allows has about 130 open.
	stride = 32
)

// ErrLongPath marks a file that is nested so deeply that its name has more than 4095 bytes.
var ErrLongPath = errors.New("nested too deeply: its name is longer than 4095 bytes")

// CheckPath returns an error that wraps [ErrLongPath] and begins with the name, as much of
// it as anybody reads, when a name is too long.
func CheckPath(name string) error {
	if len(name) <= maxPath {
		return nil
	}
	return fmt.Errorf("%.80q…: %w", name, ErrLongPath)
}

// Way leads from a directory down to one below it. Each directory is opened from the one
// above, so that the work for a file does not grow with its depth, and no link is followed.
// However deep it leads, few directories are open at a time.
type Way struct {
	steps []step // the first is where it begins
	// open is os.Root's OpenRoot.
	open func(*os.Root, string) (*os.Root, error)
}

// step is a directory of a way.
type step struct {
	name string
	info fs.FileInfo // what it was when it was entered
	root *os.Root    // nil when it is closed
}

// NewWay returns the way that has not left root yet, which stays the caller's.
func NewWay(root *os.Root) *Way {
	return &Way{steps: []step{{root: root}}, open: (*os.Root).OpenRoot}
}

// Close closes what the way has opened.
func (w *Way) Close() {
	for len(w.steps) > 1 {
		w.Leave()
	}
}

// Here returns the directory that the way leads to. It is the way's and good until the
// next call. When something else has taken the place of a directory of the way
// meanwhile, the error wraps [fs.ErrNotExist].
func (w *Way) Here() (*os.Root, error) {
	last := len(w.steps) - 1
	from := last
	for w.steps[from].root == nil {
		from--
	}
	for ; from < last; from++ {
		next := &w.steps[from+1]
		root, err := w.enter(w.steps[from].root, next.name, next.info)
		if err != nil {
			return nil, err
		}
		next.root = root
	}
	return w.steps[last].root, nil
}

// Enter goes one directory down. What is no directory is [syscall.ENOTDIR].
func (w *Way) Enter(name string) error {
	here, err := w.Here()
	if err != nil {
		return err
	}
	info, err := here.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "enter", Path: name, Err: syscall.ENOTDIR}
	}
	root, err := w.enter(here, name, info)
	if err != nil {
		return err
	}
	w.steps = append(w.steps, step{name: name, info: info, root: root})
	if depth := len(w.steps) - 1; depth%stride == 0 && depth >= 2*stride {
		for i := depth - 2*stride + 1; i < depth-stride; i++ {
			w.steps[i].close()
		}
	}
	return nil
}

// enter opens a directory if it is the one that was looked at.
func (w *Way) enter(from *os.Root, name string, seen fs.FileInfo) (*os.Root, error) {
	root, err := w.open(from, name)
	if err != nil {
		return nil, err
	}
	now, err := root.Stat(".")
	if err == nil && !os.SameFile(now, seen) {
		err = &fs.PathError{Op: "enter", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return root, nil
}

func (s *step) close() {
	if s.root != nil {
		_ = s.root.Close()
		s.root = nil
	}
}

// Leave goes one directory up; the way does not lead above where it begins.
func (w *Way) Leave() {
	last := len(w.steps) - 1
	if last == 0 {
		return
	}
	w.steps[last].close()
	w.steps = w.steps[:last]
}

// To goes to a directory, whose name is clean, with slashes, and relative to where the
// way begins, and returns it as Here does. Where perm is not 0, directories that are
// missing are made with it. A link on the way is [syscall.ENOTDIR].
func (w *Way) To(dir string, perm fs.FileMode) (*os.Root, error) {
	if err := CheckPath(dir); err != nil {
		return nil, err
	}
	var names []string
	if dir != "." {
		names = strings.Split(dir, "/")
	}
	same := 0
	for same < len(names) && same+1 < len(w.steps) && w.steps[same+1].name == names[same] {
		same++
	}
	for len(w.steps)-1 > same {
		w.Leave()
	}
	for i, name := range names[same:] {
		err := w.Enter(name)
		if errors.Is(err, fs.ErrNotExist) && perm != 0 {
			if err = w.make(name, perm); err == nil {
				err = w.Enter(name)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", path.Join(names[:same+i+1]...), err)
		}
	}
	return w.Here()
}

func (w *Way) make(name string, perm fs.FileMode) error {
	here, err := w.Here()
	if err != nil {
		return err
	}
	if err := here.Mkdir(name, perm); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
