package bounded

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
)

const (
	// deepest bounds how deep directories are entered, each of which is open at the
	// same time; nobody reads files that are nested deeper than this.
	deepest = 256
	// batch is how many entries of a directory are read at a time.
	batch = 1024
)

var errTooDeep = errors.New("nested too deeply")

// Place is a directory that [Walk] goes through.
type Place struct {
	// Root is the directory, open while its entries are visited.
	Root *os.Root
	// Path is its name below the directory at which the walk began, with slashes, "."
	// for that one itself.
	Path string

	visit  func(Place, fs.DirEntry) error
	failed func(name string, err error)
	depth  int
}

// Walk visits the entries of a directory that others may have written, in no order. No
// link is followed. visit decides, by [Place.Enter], which directories are gone through,
// and when; what it returns is told to failed, with the entry's name below dir, and the
// walk goes on. fs.SkipAll ends it. A directory that cannot be read is told, too.
//
// Each directory is opened from the one above it, so that the work for an entry does not
// grow with the depth; directories that are nested too deeply are not entered.
func Walk(dir string, visit func(p Place, e fs.DirEntry) error, failed func(name string, err error)) {
	root, err := OpenDir(dir)
	if err == nil {
		err = Place{Root: root, Path: ".", visit: visit, failed: failed}.entries()
	}
	if err != nil && !errors.Is(err, fs.SkipAll) {
		failed(".", err)
	}
}

// Name is the name of an entry below the directory at which the walk began.
func (p Place) Name(entry string) string { return path.Join(p.Path, entry) }

// Enter visits what is in a directory of the place. Its error is for visit to return.
func (p Place) Enter(entry string) error {
	if p.depth == deepest {
		return errTooDeep
	}
	root, err := p.Root.OpenRoot(entry)
	if err != nil {
		return err
	}
	return Place{Root: root, Path: p.Name(entry), visit: p.visit, failed: p.failed, depth: p.depth + 1}.entries()
}

// entries visits all of a directory, and closes it.
func (p Place) entries() error {
	defer func() { _ = p.Root.Close() }()
	list, err := p.Root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = list.Close() }()
	for {
		entries, err := list.ReadDir(batch)
		for _, e := range entries {
			switch err := p.visit(p, e); {
			case errors.Is(err, fs.SkipAll):
				return err
			case err != nil:
				p.failed(p.Name(e.Name()), err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
