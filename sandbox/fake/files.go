package fake

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/proctor-run/proctor/sandbox"
)

// files are a sandbox's file system: a directory on the host, and what is
// mounted into it. Every access goes through an os.Root, so that links lead
// nowhere else; absolute links are not followed at all.
type files struct {
	places []place // the first that holds a path is it
}

// place is a part of the file system.
type place struct {
	target   string // in the sandbox
	host     string // the directory on the host
	file     string // set when a single file is mounted: its name in host
	readOnly bool
	root     func() (*os.Root, error)
	close    func()
}

func newPlace(target, host, file string, readOnly bool) place {
	var mu sync.Mutex
	var root *os.Root
	return place{
		target: path.Clean(target), host: host, file: file, readOnly: readOnly,
		root: func() (_ *os.Root, err error) {
			mu.Lock()
			defer mu.Unlock()
			if root == nil {
				root, err = os.OpenRoot(host)
			}
			return root, err
		},
		close: func() {
			mu.Lock()
			defer mu.Unlock()
			if root != nil {
				_ = root.Close()
				root = nil
			}
		},
	}
}

// fill makes the file system: mounts and Config.Files.
func (s *Sandbox) fill() error {
	rootDir := filepath.Join(s.dir, "root")
	if err := os.Mkdir(rootDir, 0o755); err != nil {
		return err
	}
	places := []place{newPlace("/", rootDir, "", false)}
	if s.origin != nil {
		s.files.places = places
		if err := s.files.unpack("/", bytes.NewReader(s.origin)); err != nil {
			return fmt.Errorf("files of the snapshot: %w", err)
		}
	}
	for _, m := range s.spec.Mounts {
		s.files.places = slices.Clone(places)
		slices.Reverse(s.files.places)
		place, err := s.mount(m)
		if err != nil {
			return fmt.Errorf("mounting %q: %w", m.Target, err)
		}
		if s.b.caps.Mounted {
			places = append(places, place)
		}
	}
	slices.Reverse(places) // what is mounted last covers what was there
	s.files.places = places
	if s.origin != nil {
		return nil
	}
	for name, content := range s.b.cfg.Files {
		var err error
		if strings.HasSuffix(name, "/") {
			err = s.files.mkdir(name)
		} else {
			err = s.WriteFile(name, []byte(content), 0o644)
		}
		if err != nil {
			return fmt.Errorf("image file %q: %w", name, err)
		}
	}
	return nil
}

// mount creates the target of a mount.
func (s *Sandbox) mount(m sandbox.Mount) (place, error) {
	if m.Volume {
		m.Source = filepath.Join(s.dir, "volumes", m.Target)
		if err := os.MkdirAll(m.Source, 0o755); err != nil {
			return place{}, err
		}
	}
	fi, err := os.Stat(m.Source)
	if err != nil {
		return place{}, err
	}
	if fi.IsDir() {
		return newPlace(m.Target, m.Source, "", m.ReadOnly), s.files.mkdir(m.Target)
	}
	p := newPlace(m.Target, filepath.Dir(m.Source), filepath.Base(m.Source), m.ReadOnly)
	return p, s.WriteFile(m.Target, nil, 0o644)
}

func (f *files) close() {
	for _, p := range f.places {
		p.close()
	}
}

// find returns the part of the file system that holds p, and p's name in it.
func (f *files) find(p string) (place, string, error) {
	if !path.IsAbs(p) {
		return place{}, "", fmt.Errorf("%q is not an absolute path", p)
	}
	p = path.Clean(p)
	for _, pl := range f.places {
		switch {
		case p == pl.target && pl.file != "":
			return pl, pl.file, nil
		case p == pl.target:
			return pl, ".", nil
		case pl.target == "/":
			return pl, p[1:], nil
		case strings.HasPrefix(p, pl.target+"/") && pl.file == "":
			return pl, p[len(pl.target)+1:], nil
		}
	}
	return place{}, "", fs.ErrNotExist
}

// at does something with the root and name of p.
func (f *files) at(p string, do func(root *os.Root, name string) error) error {
	pl, name, err := f.find(p)
	if err != nil {
		return err
	}
	root, err := pl.root()
	if err != nil {
		return err
	}
	return do(root, name)
}

// change is at for what writes.
func (f *files) change(p string, do func(root *os.Root, name string) error) error {
	pl, _, err := f.find(p)
	if err != nil {
		return err
	}
	if pl.readOnly {
		return &fs.PathError{Op: "write", Path: p, Err: errors.New("read-only file system")}
	}
	return f.at(p, do)
}

// mkdir makes a directory and its parents, each where it belongs.
func (f *files) mkdir(p string) error {
	p = path.Clean(p)
	if p == "/" {
		return nil
	}
	err := f.at(p, func(root *os.Root, name string) error {
		if fi, err := root.Stat(name); err != nil || !fi.IsDir() {
			return errors.Join(err, errNotDir)
		}
		return nil
	})
	if err == nil {
		return nil
	}
	if err := f.mkdir(path.Dir(p)); err != nil {
		return err
	}
	return f.change(p, func(root *os.Root, name string) error { return root.Mkdir(name, 0o755) })
}

var errNotDir = errors.New("not a directory")

// Path is where a path of the sandbox is on the host, below a mount in the
// mount's source. It need not exist.
func (s *Sandbox) Path(p string) string {
	pl, name, err := s.files.find(p)
	if err != nil {
		return ""
	}
	return filepath.Join(pl.host, filepath.FromSlash(name))
}

// ReadFile reads a file of the sandbox.
func (s *Sandbox) ReadFile(p string) (data []byte, err error) {
	err = s.files.at(p, func(root *os.Root, name string) (err error) {
		data, err = root.ReadFile(name)
		return err
	})
	return data, err
}

// WriteFile writes a file of the sandbox; its parents are created.
func (s *Sandbox) WriteFile(p string, data []byte, mode fs.FileMode) error {
	if err := s.files.mkdir(path.Dir(path.Clean(p))); err != nil {
		return err
	}
	return s.files.change(p, func(root *os.Root, name string) error { return root.WriteFile(name, data, mode) })
}

// Symlink makes a link in the sandbox; its parents are created.
func (s *Sandbox) Symlink(target, p string) error {
	if err := s.files.mkdir(path.Dir(path.Clean(p))); err != nil {
		return err
	}
	return s.files.change(p, func(root *os.Root, name string) error { return root.Symlink(target, name) })
}

// Remove removes a path of the sandbox and all below it.
func (s *Sandbox) Remove(p string) error {
	return s.files.change(p, func(root *os.Root, name string) error { return root.RemoveAll(name) })
}

// removeAll also removes what lies in directories that their owner cannot
// write to, as an ordinary user's uploads may.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil // what is left is RemoveAll's to report
	})
	return os.RemoveAll(dir)
}
