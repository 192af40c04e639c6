package traces

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

// A File is a trajectory on disk.
type File struct {
	// dir is a directory that others may have written to; without one, name is a
	// path that the user gave.
	dir, name string
}

// FileIn is a file of a directory that others may have written to: name is slash-separated
// below it, and what leads elsewhere is not opened.
func FileIn(dir, name string) File { return File{dir: dir, name: name} }

// Files finds trajectories: path itself when it is no directory, else every
// trajectory*.json at and below it, sorted. Hidden directories and earlier
// attempts of trials are left out.
func Files(path string) ([]File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("looking for trajectories: %w", err)
	}
	if !info.IsDir() {
		return []File{{name: path}}, nil
	}
	var found []File
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != path && leftOut(d.Name()):
			return fs.SkipDir
		case d.IsDir() || !isTrajectoryName(d.Name()):
			return nil
		}
		name, err := filepath.Rel(path, p)
		if err != nil {
			return fmt.Errorf("naming a trajectory: %w", err)
		}
		found = append(found, File{dir: path, name: name})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for trajectories: %w", err)
	}
	return found, nil
}

// leftOut reports directories that hold nothing current.
func leftOut(name string) bool { return strings.HasPrefix(name, ".") || name == "attempts" }

func isTrajectoryName(name string) bool {
	return strings.HasPrefix(name, "trajectory") && strings.HasSuffix(name, ".json")
}

// Parts lists the trajectory of a trial and the files that continue it, of each of
// its steps in turn.
func Parts(dir string) ([]File, error) {
	steps, err := filepath.Glob(filepath.Join(dir, "steps", "*"))
	if err != nil {
		return nil, fmt.Errorf("looking for trajectories: %w", err)
	}
	slices.Sort(steps)
	var found []File
	for _, d := range append([]string{dir}, steps...) {
		t := trial{dir: d}
		err := t.follow(func(name string, _ *value.Object) error {
			found = append(found, File{dir: d, name: path.Join(agentDir, name)})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Path is where the file is.
func (f File) Path() string { return filepath.Join(f.dir, filepath.FromSlash(f.name)) }

// Open opens the file. Whoever reads it bounds what is read.
func (f File) Open() (*os.File, error) {
	if f.dir == "" {
		return bounded.OpenRegular(f.name)
	}
	return bounded.OpenIn(f.dir, filepath.FromSlash(f.name))
}

// Read reads the document, which need not be a trajectory. A document that is no
// JSON is an [*atif.Invalid].
func (f File) Read() (value.Value, error) {
	var data []byte
	var err error
	if f.dir == "" {
		data, err = bounded.ReadFile(f.name, maxTrajectory)
	} else {
		data, err = bounded.ReadIn(f.dir, f.name, maxTrajectory)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a trajectory: %w", err)
	}
	return atif.ParseJSON(data)
}

// Validate checks the file: the document, and, with images, that the images exist
// to which it refers. Images are looked for at and below the file's directory
// alone. The error is that of reading. (Section 6.4.)
func (f File) Validate(images bool) ([]atif.Problem, error) {
	v, err := f.Read()
	if err == nil {
		_, err = atif.Decode(v)
	}
	var problems []atif.Problem
	if bad, ok := errors.AsType[*atif.Invalid](err); ok {
		problems, err = bad.Problems, nil
	}
	if err != nil || !images || v == nil {
		return problems, err
	}
	root, err := os.OpenRoot(filepath.Dir(f.Path()))
	if err != nil {
		return problems, fmt.Errorf("looking for images: %w", err)
	}
	defer func() { _ = root.Close() }()
	return append(problems, atif.MissingImages(v, func(name string) bool {
		_, err := root.Stat(filepath.FromSlash(name))
		return err == nil
	})...), nil
}
