package ownrunner

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/outcome"
)

// maxRecord is the size of the largest record that is read, in bytes.
const maxRecord = 256 << 20

// ReadRecords reads the records of a job directory, see [outcome.ReadTrials], of which
// others may have written every file: what leads out of the directory, is no file or is
// too large is an errored trial, and nothing is waited for. Without a task the
// directory's name stands for it. The error is fs.ErrNotExist for a directory that is
// not there.
func ReadRecords(dir, task string) ([]outcome.TrialRecord, error) {
	root, err := bounded.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	if task == "" {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		task = filepath.Base(absolute)
	}
	return outcome.ReadTrials(records{root}, task)
}

// records are the files of a job directory.
type records struct{ root *os.Root }

func (r records) Open(name string) (fs.File, error) { return bounded.OpenAt(r.root, name) }

func (r records) Stat(name string) (fs.FileInfo, error) { return r.root.Stat(name) }

// Lstat tells links from what they lead to.
func (r records) Lstat(name string) (fs.FileInfo, error) { return r.root.Lstat(name) }

func (r records) ReadFile(name string) ([]byte, error) {
	return bounded.ReadAt(r.root, name, maxRecord)
}

// maxEntries bounds the entries of one directory.
const maxEntries = 1 << 20

var errManyEntries = errors.New("the directory has too many entries")

// ReadDir lists what is a directory, in the order of names.
func (r records) ReadDir(name string) ([]fs.DirEntry, error) {
	info, err := r.root.Stat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, err
	}
	d, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	entries, err := d.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) == maxEntries {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errManyEntries}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}
