package scan

import (
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

	"github.com/proctor-run/proctor/jobdir"
)

// Names of the files in job and trial directories that this package reads.
const (
	ResultFile = "result.json"
	ConfigFile = "config.json"
	LockFile   = "lock.json"
)

// maxResultSize bounds how much of one result.json is read: results with token
// records can be large, but not this large.
const maxResultSize = 1 << 30

// FileRecord is a record as it was found in a job directory.
type FileRecord struct {
	jobdir.Record
	Dir       string // name of the trial directory
	StartedAt int64  // microseconds since 1970, 0 if unknown
}

// ReadRecord reads the record of one result.json. Fields that aggregation does
// not need are checked to be JSON and no more; use
// [jobdir.ParseTrialResult] to validate all. Errors name the file, and the field where one is wrong.
func ReadRecord(path string) (FileRecord, error) {
	var r recordReader
	return r.read(path)
}

// recordReader reads many records with one buffer.
type recordReader struct {
	buf []byte
	in  interner
}

func (r *recordReader) read(path string) (FileRecord, error) {
	data, err := r.load(path)
	if err != nil {
		return FileRecord{}, fmt.Errorf("reading trial result: %w", err)
	}
	if r.in == nil {
		r.in = interner{}
	}
	dir := filepath.Base(filepath.Dir(path))
	if rec, ok := scanRecord(data, &r.in); ok {
		rec.Dir = dir
		return rec, nil
	}
	full, err := jobdir.ParseTrialResult(data)
	if err != nil {
		return FileRecord{}, fmt.Errorf("reading %q: %w", path, err)
	}
	rec := FileRecord{Record: jobdir.RecordOf(&full), Dir: dir}
	if full.StartedAt != nil {
		rec.StartedAt = microsOf(*full.StartedAt)
	}
	return rec, nil
}

func microsOf(t jobdir.Time) int64 { return t.In(time.UTC).UnixMicro() }

// load reads a file into the reader's buffer.
func (r *recordReader) load(path string) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
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
		case n > maxResultSize:
			return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("more than %d bytes", maxResultSize)}
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
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if isDir(dir, e) {
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
				records[i], errs[i] = r.read(filepath.Join(dir, names[i], ResultFile))
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

// isDir follows links, as the reference does.
func isDir(dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(filepath.Join(dir, e.Name()))
	return err == nil && info.IsDir()
}
