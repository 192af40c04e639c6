package redact

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
func Tree(dir string, set *Set, stop <-chan struct{}, skip ...string) error {
	if set == nil {
		return nil
	}
	t := &tree{set: set, stop: stop, skip: skip}
	bounded.Walk(dir, t.entry, t.failed)
	return t.err()
}

type tree struct {
	set    *Set
	stop   <-chan struct{}
	skip   []string
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

func (t *tree) entry(p bounded.Place, e fs.DirEntry) (err error) {
	select {
	case <-t.stop:
		t.failed(".", errStopped)
		return fs.SkipAll
	default:
	}
	name := e.Name()
	if p.Path == "." && slices.Contains(t.skip, name) {
		return nil
	}
	switch mode := e.Type(); {
	case mode.IsDir():
		if err = p.Enter(name); errors.Is(err, fs.SkipAll) {
			return err
		}
	case mode.IsRegular():
		err = t.file(p.Root, name)
	case mode&fs.ModeSymlink != 0:
		var target string
		if target, err = p.Root.Readlink(name); err == nil && t.set.Has(target) {
			return p.Root.Remove(name)
		}
	}
	return errors.Join(err, t.rename(p.Root, name))
}

// rename gives what has a secret in its name another one that is free.
func (t *tree) rename(in *os.Root, name string) error {
	clean := t.set.String(name)
	if clean == name {
		return nil
	}
	free := clean
	for n := 2; ; n++ {
		if _, err := in.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			return in.Rename(name, free)
		} else if err != nil {
			return err
		}
		free = fmt.Sprintf("%s-%d", clean, n)
	}
}

// file replaces a file that has secrets by one without, of the same mode. One that
// grows meanwhile is read as far as it was there.
func (t *tree) file(in *os.Root, name string) error {
	f, err := bounded.OpenAt(in, name)
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
	return t.replace(in, name, io.LimitReader(f, info.Size()), info.Mode().Perm(), binary)
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

func (t *tree) replace(root *os.Root, name string, from io.Reader, mode fs.FileMode, binary bool) (err error) {
	temp := fmt.Sprintf(".redacted-%d.tmp", os.Getpid())
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
	return root.Rename(temp, name)
}
