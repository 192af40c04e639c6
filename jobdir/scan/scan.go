package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
)

// Names of the files in job and trial directories that this package reads.
const (
	ResultFile = "result.json"
	ConfigFile = "config.json"
	LockFile   = "lock.json"
)

// FileRecord is a record as it was found in a job directory.
type FileRecord struct {
	jobdir.Record
	Dir       string // name of the trial directory
	StartedAt int64  // microseconds since 1970, 0 if unknown
	Phases    []Phase
}

// ReadRecord reads the record of one result.json. Fields that aggregation does
// not need are checked to be JSON and no more; use
// [jobdir.ParseTrialResult] to validate all. Errors name the file, and the field where one is wrong.
//
// The directory may be a stranger's: what is no regular file, leads out of it or has
// more than [jobdir.MaxTrialFile] bytes is an error.
func ReadRecord(path string) (FileRecord, error) {
	root, err := bounded.OpenDir(filepath.Dir(path))
	if err != nil {
		return FileRecord{}, fmt.Errorf("reading trial result: %w", err)
	}
	defer func() { _ = root.Close() }()
	var r recordReader
	return r.read(root, filepath.Base(path), filepath.Base(filepath.Dir(path)))
}

// recordReader reads many records with one buffer.
type recordReader struct {
	buf []byte
	in  interner
}

// read reads a file below a directory; dir is the name of the trial's.
func (r *recordReader) read(root *os.Root, name, dir string) (FileRecord, error) {
	data, err := r.load(root, name)
	if err != nil {
		return FileRecord{}, fmt.Errorf("reading trial result: %w", err)
	}
	if r.in == nil {
		r.in = interner{}
	}
	if rec, ok := scanRecord(data, &r.in); ok {
		rec.Dir = dir
		return rec, nil
	}
	full, err := jobdir.ParseTrialResult(data)
	if err != nil {
		return FileRecord{}, fmt.Errorf("reading %q: %w", filepath.Join(root.Name(), name), err)
	}
	rec := FileRecord{Record: jobdir.RecordOf(&full), Dir: dir, Phases: PhasesOf(&full)}
	if full.StartedAt != nil {
		rec.StartedAt = microsOf(*full.StartedAt)
	}
	return rec, nil
}

func microsOf(t jobdir.Time) int64 { return t.In(time.UTC).UnixMicro() }

// load reads a file into the reader's buffer.
func (r *recordReader) load(root *os.Root, name string) (data []byte, err error) {
	f, err := bounded.OpenAt(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	tooLarge := &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("%w: more than %d bytes", bounded.ErrTooLarge, jobdir.MaxTrialFile)}
	if info, err := f.Stat(); err != nil || info.Size() > jobdir.MaxTrialFile {
		return nil, cmp.Or[error](err, tooLarge)
	}
	if r.buf == nil {
		r.buf = make([]byte, 16<<10)
	}
	n := 0
	for {
		got, err := f.Read(r.buf[n:])
		n += got
		switch {
		case errors.Is(err, io.EOF):
			return r.buf[:n], nil
		case err != nil:
			return nil, err
		case n > jobdir.MaxTrialFile:
			return nil, tooLarge
		case n == len(r.buf):
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
	}
}

// Scanned is what [Dir] found in a job directory.
type Scanned struct {
	// Records holds one record per readable trial, sorted by directory name.
	Records []FileRecord
	// Unfinished names the sub-directories without result.json.
	Unfinished []string
	// Errors holds one error per result.json that could not be read.
	Errors []error
}

// Scan reads the records of all trials of a job directory, in parallel. The
// error says why the directory as a whole could not be read; trouble with
// single trials is in the result.
func Dir(ctx context.Context, dir string) (Scanned, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Scanned{}, fmt.Errorf("reading job directory: %w", err)
	}
	root, err := bounded.OpenDir(dir)
	if err != nil {
		return Scanned{}, fmt.Errorf("reading job directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if isDir(root, e) {
			names = append(names, e.Name())
		}
	}
	records := make([]FileRecord, len(names))
	errs := make([]error, len(names))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(names)) {
		wg.Go(func() {
			var r recordReader
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(names) {
					return
				}
				records[i], errs[i] = r.read(root, filepath.Join(names[i], ResultFile), names[i])
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return Scanned{}, fmt.Errorf("reading job directory %q: %w", dir, err)
	}
	return collect(names, records, errs), nil
}

// collect sorts what was read into a Scanned, reusing the memory of records.
func collect(names []string, records []FileRecord, errs []error) Scanned {
	s := Scanned{Records: records[:0]}
	for i, err := range errs {
		switch {
		case err == nil:
			s.Records = append(s.Records, records[i])
		case errors.Is(err, fs.ErrNotExist):
			s.Unfinished = append(s.Unfinished, names[i])
		default:
			s.Errors = append(s.Errors, err)
		}
	}
	return s
}

// isDir follows links, as the reference does. One that leads out of the job's directory
// counts as a trial too: reading its result says that it is not followed.
func isDir(root *os.Root, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := root.Stat(e.Name())
	if err == nil {
		return info.IsDir()
	}
	info, err = os.Stat(filepath.Join(root.Name(), e.Name()))
	return err == nil && info.IsDir()
}
