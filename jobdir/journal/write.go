package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
)

// journal appends to the journal of a job. A nil journal records nothing. Its
// methods may be called concurrently.
type Writer struct {
	f   *os.File
	now func() time.Time

	mu     sync.Mutex // guards what follows, and the order of lines
	size   int64
	prev   string // digest of the last line
	failed error  // after it nothing that is written can be relied on

	// One wait for the disk serves all that were written before it began.
	syncing sync.Mutex // guards what follows
	synced  int64
	syncs   int
}

// openJournal opens the journal of a directory, and makes it if there is none.
// A line that a killed writer did not finish is cut off.
func Open(dir string, now func() time.Time) (*Writer, error) {
	f, err := bounded.AppendIn(dir, File, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening journal: %w", err)
	}
	size, prev, err := wholeSize(f)
	if err == nil && size == 0 {
		err = syncDir(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("opening journal: %w", errors.Join(err, f.Close()))
	}
	return &Writer{f: f, now: now, size: size, prev: prev, synced: size}, nil
}

// wholeSize cuts off a last line that is not whole, and returns the size and the digest of
// the last that is.
func wholeSize(f *os.File) (size int64, last string, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, "", err
	}
	if info.Size() > maxSize {
		return 0, "", errTooLarge
	}
	j, err := read(f, func(Entry) {})
	if damaged := (*Error)(nil); err != nil && !errors.As(err, &damaged) {
		return 0, "", err // other damage is for readers to tell
	}
	if j.Torn {
		return j.Size, j.Chain.Last, f.Truncate(j.Size)
	}
	return j.Size, j.Chain.Last, nil
}

func (j *Writer) Close() error {
	if j == nil {
		return nil
	}
	if err := j.f.Close(); err != nil {
		return fmt.Errorf("closing the journal: %w", err)
	}
	return nil
}

// note appends an entry without waiting for the disk.
func (j *Writer) Append(e Entry) error {
	_, err := j.write(e)
	return err
}

// decide appends an entry and returns when it is on the disk.
func (j *Writer) AppendSync(e Entry) error {
	end, err := j.write(e)
	if err != nil || j == nil {
		return err
	}
	return j.sync(end)
}

// append writes an entry and returns where it ends.
func (j *Writer) write(e Entry) (end int64, err error) {
	if j == nil {
		return 0, nil
	}
	e.Time = j.now().UTC()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return 0, j.failed
	}
	e.Prev = j.prev
	line, err := e.line()
	if err != nil {
		return 0, fmt.Errorf("writing journal: %w", err)
	}
	if _, err := j.f.Write(line); err != nil {
		// What was written of the line goes again, so that the next finds an end.
		err = fmt.Errorf("writing journal: %w", err)
		if cut := j.f.Truncate(j.size); cut != nil {
			j.failed = err
		}
		return 0, err
	}
	j.size, j.prev = j.size+int64(len(line)), jobdir.DigestOf(line).SHA256
	return j.size, nil
}

// sync returns when everything before end is on the disk.
func (j *Writer) sync(end int64) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.synced >= end {
		return nil
	}
	j.mu.Lock()
	written, failed := j.size, j.failed
	j.mu.Unlock()
	if failed != nil {
		return failed
	}
	j.syncs++
	if err := j.f.Sync(); err != nil {
		err = fmt.Errorf("writing journal: %w", err)
		// What the disk did not take may be gone from memory too.
		j.mu.Lock()
		j.failed = err
		j.mu.Unlock()
		return err
	}
	j.synced = written
	return nil
}

// Append adds one entry to the journal of a job directory, and returns
// when it is on the disk. A directory without a journal stays without.
func Append(dir string, e Entry, now func() time.Time) error {
	if _, err := os.Lstat(filepath.Join(dir, File)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	j, err := Open(dir, now)
	if err != nil {
		return err
	}
	return errors.Join(j.AppendSync(e), j.Close())
}

// begun reports whether the journal has entries.
func (j *Writer) Begun() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size > 0
}
