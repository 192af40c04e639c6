package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/bounded"
)

// Journal is what was read of a journal.
type Journal struct {
	Entries []Entry
	// Torn: the last line is not whole, and left out. Its writer was killed
	// before anything came of it.
	Torn bool
	// Size is the length of what is whole, in bytes: where the next entry goes.
	Size int64
	// Chain says whether the lines are those that were written.
	Chain Chain
}

// Chain is what the digests that lines have of the lines before them come to.
type Chain struct {
	// Lines are the whole ones, Linked those that name the one before. Journals of a
	// proctor that did not link them have none.
	Lines, Linked int
	// Broken are the numbers of lines, from 1, that name another line than the one that
	// stands before them, or none: the first [MaxBroken] of them.
	Broken []int
	// Last is the digest of the last whole line, in hex; the next one names it.
	Last string
}

// MaxBroken bounds the broken lines that are listed.
const MaxBroken = 100

// add takes the next whole line; of one that is damaged the entry is nil.
func (c *Chain) add(e *Entry, sum string) {
	c.Lines++
	if e != nil && e.Prev != "" {
		c.Linked++
	}
	if (e == nil || e.Prev != c.Last) && len(c.Broken) < MaxBroken {
		c.Broken = append(c.Broken, c.Lines)
	}
	c.Last = sum
}

// Error is a line of a journal that cannot be read and is not the last
// one: the file was damaged, and not by a crash.
type Error struct {
	Line int // counts from 1
	Err  error
	size int64
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Read reads a journal. A last line that is not whole is dropped. For other lines
// that cannot be read the error is an [*Error] of the first; the result then holds
// the entries of all others, for every line stands for itself.
func Read(r io.Reader) (Journal, error) {
	var entries []Entry
	j, err := read(r, func(e Entry) { entries = append(entries, e) })
	j.Entries = entries
	return j, err
}

// read is Read without keeping the entries.
func read(r io.Reader, add func(Entry)) (Journal, error) {
	var j Journal
	var damaged, last *Error // last: of the line before
	var lastSum string
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, size, sum, err := readLine(in)
		if err != nil {
			return j, fmt.Errorf("reading journal: %w", err)
		}
		if size == 0 {
			break
		}
		if last != nil {
			// A line follows, so that one was no end.
			j.Size += last.size
			j.Chain.add(nil, lastSum)
			if damaged == nil {
				damaged = last
			}
		}
		entry, err := parseLine(line, size)
		if err != nil {
			last, lastSum = &Error{Line: n, Err: err, size: size}, sum
			continue
		}
		last = nil
		add(entry)
		j.Size += size
		j.Chain.add(&entry, sum)
	}
	j.Torn = last != nil
	if damaged != nil {
		return j, damaged
	}
	return j, nil
}

// Load reads the journal of a job directory, see [Read]. A directory without one
// gives an empty journal.
func Load(dir string) (j Journal, err error) {
	err = load(dir, func(r io.Reader) (err error) {
		j, err = Read(r)
		return err
	})
	return j, err
}

// LoadState is [NewState] of [Load], entry by entry: a journal has several for each
// trial, and most of them come to one line of the state.
func LoadState(dir string) (*State, error) {
	s := newState()
	err := load(dir, func(r io.Reader) error {
		j, err := read(r, s.add)
		s.Torn, s.Chain = j.Torn, j.Chain
		return err
	})
	return s, err
}

// load has the journal of a job directory read, where there is one.
func load(dir string, read func(io.Reader) error) (err error) {
	path := filepath.Join(dir, File)
	f, err := bounded.OpenIn(dir, File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading journal: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || info.Size() > maxSize {
		return fmt.Errorf("reading journal %s: %w", path, cmp.Or(err, errTooLarge))
	}
	if err := read(f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// maxSize bounds a journal, in bytes: of a job of a million trials it is smaller.
const maxSize = 4 << 30

var errTooLarge = fmt.Errorf("%w: more than %d bytes", bounded.ErrTooLarge, int64(maxSize))

// readLine reads a line with its end and tells its size; of one that is
// too long it returns only the beginning.
func readLine(in *bufio.Reader) (line []byte, size int64, sum string, err error) {
	digest := sha256.New()
	for {
		part, err := in.ReadSlice('\n')
		size += int64(len(part))
		_, _ = digest.Write(part) // a hash never fails
		if size <= maxLine {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil || errors.Is(err, io.EOF):
			return line, size, hex.EncodeToString(digest.Sum(nil)), nil
		}
		return nil, size, "", fmt.Errorf("after %d bytes of a line: %w", size, err)
	}
}

func parseLine(line []byte, size int64) (Entry, error) {
	var e Entry
	if size > maxLine {
		return e, fmt.Errorf("longer than %d bytes", maxLine)
	}
	text, whole := bytes.CutSuffix(line, []byte{'\n'})
	if !whole {
		return e, errors.New("it has no end")
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, err //nolint:wrapcheck // Read says that it is of an entry, and of which
	}
	if e.Kind == "" {
		return e, errors.New("it does not name its event")
	}
	return e, nil
}
