package redact

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/proctor-run/proctor/internal/bounded"
)

// Tree takes secrets out of the regular files below a directory that others may have
// written, out of the names there, and removes links whose targets have some. No link
// is followed, and nothing but regular files is opened. Names in skip, of the
// directory itself, are left alone. What cannot be read or written is named in the
// error, and the rest done all the same; when stop is closed, the rest is not done,
// which is an error.
//
// Text gets marks. In files with a NUL byte, which readers may address by position,
// each byte of a secret becomes an asterisk.
func Tree(root *os.Root, set *Set, stop <-chan struct{}, skip ...string) error {
	if set == nil {
		return nil
	}
	t := &tree{set: set, stop: stop}
	if err := t.dir(place{root: root, dir: ".", at: "."}, skip); err != nil {
		t.failed(".", err)
	}
	return t.err()
}

type tree struct {
	set    *Set
	stop   <-chan struct{}
	errs   []error
	nMore  int
	buffer []byte
}

// errStopped is the error of a scan that was given up.
var errStopped = errors.New("the scan was given up")

// maxErrors bounds what an error of a tree names.
const maxErrors = 5

func (t *tree) failed(name string, err error) {
	if len(t.errs) == maxErrors {
		t.nMore++
		return
	}
	t.errs = append(t.errs, fmt.Errorf("%q: %w", t.set.String(name), t.set.Error(err)))
}

func (t *tree) err() error {
	errs := t.errs
	if t.nMore > 0 {
		errs = append(errs, fmt.Errorf("%d more", t.nMore))
	}
	return errors.Join(errs...)
}

// place is a directory: dir below one that is open.
type place struct {
	root *os.Root
	dir  string
	at   string // its path for messages
	// held counts the directories that are open above it.
	held int
}

// maxHeld bounds how many directories are open at once: trees may be deeper than a
// process may have files.
const maxHeld = 64

func (p place) name(name string) string { return path.Join(p.dir, name) }

// dir cleans what is in a directory. The error is that of listing it, or errStopped.
func (t *tree) dir(p place, skip []string) error {
	list, err := p.root.Open(p.dir)
	if err != nil {
		return err
	}
	entries, err := list.ReadDir(-1)
	if err := errors.Join(err, list.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		select {
		case <-t.stop:
			return errStopped
		default:
		}
		if slices.Contains(skip, e.Name()) {
			continue
		}
		if err := t.entry(p, e); errors.Is(err, errStopped) {
			return err
		} else if err != nil {
			t.failed(path.Join(p.at, e.Name()), err)
		}
	}
	return nil
}

func (t *tree) entry(p place, e fs.DirEntry) (err error) {
	name := e.Name()
	switch mode := e.Type(); {
	case mode.IsDir():
		err = t.enter(p, name)
	case mode.IsRegular():
		err = t.file(p, name)
	case mode&fs.ModeSymlink != 0:
		var target string
		if target, err = p.root.Readlink(p.name(name)); err == nil && t.set.Has(target) {
			return p.root.Remove(p.name(name))
		}
	}
	return errors.Join(err, t.rename(p, name))
}

func (t *tree) enter(p place, name string) error {
	at := path.Join(p.at, name)
	if p.held >= maxHeld {
		return t.dir(place{root: p.root, dir: p.name(name), at: at, held: p.held}, nil)
	}
	sub, err := p.root.OpenRoot(name)
	if err != nil {
		return err
	}
	return errors.Join(t.dir(place{root: sub, dir: ".", at: at, held: p.held + 1}, nil), sub.Close())
}

// rename gives what has a secret in its name another one that is free.
func (t *tree) rename(p place, name string) error {
	clean := t.set.String(name)
	if clean == name {
		return nil
	}
	free := clean
	for n := 2; ; n++ {
		if _, err := p.root.Lstat(p.name(free)); errors.Is(err, fs.ErrNotExist) {
			return p.root.Rename(p.name(name), p.name(free))
		} else if err != nil {
			return err
		}
		free = fmt.Sprintf("%s-%d", clean, n)
	}
}

// file replaces a file that has secrets by one without, of the same mode. One that
// grows meanwhile is read as far as it was there.
func (t *tree) file(p place, name string) error {
	f, err := bounded.OpenAt(p.root, p.name(name))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	found, binary, err := t.search(io.LimitReader(f, info.Size()))
	if err != nil || !found {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return t.replace(p, name, io.LimitReader(f, info.Size()), info.Mode().Perm(), binary)
}

// search reads a file and reports whether it has secrets, and whether it is binary.
func (t *tree) search(r io.Reader) (found, binary bool, err error) {
	if t.buffer == nil {
		t.buffer = make([]byte, chunk+t.set.longest)
	}
	kept := 0
	for {
		n, err := r.Read(t.buffer[kept:])
		text := t.buffer[:kept+n]
		binary = binary || bytes.IndexByte(text[kept:], 0) >= 0
		if !found {
			_, _, found = t.set.next(text, 0)
		}
		switch {
		case found && binary, err == io.EOF: //nolint:errorlint // readers return it itself
			return found, binary, nil
		case err != nil:
			return found, binary, err
		}
		kept = copy(t.buffer, text[max(0, len(text)-t.set.longest+1):])
	}
}

// chunk is how much of a file is read at once.
const chunk = 256 << 10

func (t *tree) replace(p place, name string, from io.Reader, mode fs.FileMode, binary bool) (err error) {
	root, temp := p.root, p.name(fmt.Sprintf(".redacted-%d.tmp", os.Getpid()))
	_ = root.Remove(temp) // of a process that was killed
	to, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(temp)
		}
	}()
	buffered := bufio.NewWriterSize(to, chunk)
	w := t.set.Writer(buffered)
	w.cover.fill = binary
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{from}, make([]byte, chunk))
	if err = errors.Join(err, w.Close(), buffered.Flush(), to.Chmod(mode), to.Close()); err != nil {
		return err
	}
	return root.Rename(temp, p.name(name))
}
