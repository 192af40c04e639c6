// Package bounded keeps the output of untrusted commands within a bound: the
// beginning and the end are kept, the middle is dropped and the cut is marked.
package bounded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// File is an output file of at most Limit bytes plus one line that marks the
// cut. The first half is written through as it comes, so that it can be
// watched; of what follows, the last half is kept and written at Close.
//
// Write never fails: a full disk is reported by Close, and a command's output
// is worth less than the command.
type File struct {
	mu   sync.Mutex
	dir  string
	name string
	f    *os.File
	all  int64 // bytes that were written to it
	err  error
	head int64 // bytes that still may be written through
	tail Tail
}

// Create makes the file name in dir; limit is in bytes. The directory may be
// one that a sandbox writes to: whatever stands at the name is removed first,
// and no link is followed out of the directory.
func Create(dir, name string, limit int64) (*File, error) {
	f, err := create(dir, name)
	if err != nil {
		return nil, err
	}
	return &File{dir: dir, name: name, f: f, head: limit - limit/2, tail: Tail{limit: int(limit / 2)}}, nil
}

func create(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	if err := root.RemoveAll(name); err != nil {
		return nil, err
	}
	return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// Write takes all of p.
func (b *File) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(p)
	b.all += int64(n)
	if through := min(int64(n), b.head); through > 0 {
		b.head -= through
		b.put(p[:through])
		p = p[through:]
	}
	_, _ = b.tail.Write(p)
	return n, nil
}

func (b *File) put(p []byte) {
	if b.err == nil {
		_, b.err = b.f.Write(p)
	}
}

// Written returns how many bytes came, kept or not.
func (b *File) Written() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all
}

// Cut returns how many bytes have been dropped so far.
func (b *File) Cut() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tail.Dropped()
}

// Close writes the mark and the kept end, and closes the file.
func (b *File) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cut := b.tail.Dropped(); cut > 0 {
		b.put([]byte(CutMark(cut)))
	}
	b.put(b.tail.Bytes())
	return errors.Join(b.err, b.f.Close())
}

// Discard closes the file and removes it: what would have written to it never
// ran. It returns the end of what was written, which says why.
func (b *File) Discard() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.f.Close()
	root, rootErr := os.OpenRoot(b.dir)
	if rootErr != nil {
		return "", errors.Join(err, rootErr)
	}
	defer func() { _ = root.Close() }()
	why, readErr := ReadIn(b.dir, b.name, maxWhy)
	return string(why), errors.Join(err, readErr, root.Remove(b.name))
}

// maxWhy bounds what Discard returns, in bytes.
const maxWhy = 64 << 10

// CutMark is the line that stands where n bytes were dropped.
func CutMark(n int64) string {
	return fmt.Sprintf("\n[proctor: %d bytes of output cut here]\n", n)
}

// Tail keeps the last bytes written to it. The zero value keeps nothing; use
// NewTail.
type Tail struct {
	limit int
	buf   []byte
	next  int // where the oldest byte is once buf is full
	total int64
}

var _ io.Writer = (*Tail)(nil)

// NewTail returns a Tail of limit bytes.
func NewTail(limit int) *Tail { return &Tail{limit: limit} }

// Write takes all of p.
func (t *Tail) Write(p []byte) (int, error) {
	n := len(p)
	t.total += int64(n)
	if len(p) > t.limit {
		p = p[len(p)-t.limit:]
	}
	if grow := min(len(p), t.limit-len(t.buf)); grow > 0 {
		t.buf = append(t.buf, p[:grow]...)
		p = p[grow:]
	}
	for len(p) > 0 {
		c := copy(t.buf[t.next:], p)
		t.next = (t.next + c) % len(t.buf)
		p = p[c:]
	}
	return n, nil
}

// Dropped returns how many bytes were written but not kept.
func (t *Tail) Dropped() int64 { return t.total - int64(len(t.buf)) }

// Bytes returns what is kept, oldest first.
func (t *Tail) Bytes() []byte {
	out := make([]byte, 0, len(t.buf))
	return append(append(out, t.buf[t.next:]...), t.buf[:t.next]...)
}

// String returns what is kept, with a mark in front where something was
// dropped.
func (t *Tail) String() string {
	if n := t.Dropped(); n > 0 {
		return CutMark(n)[1:] + string(t.Bytes())
	}
	return string(t.Bytes())
}
