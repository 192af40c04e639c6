package bounded

import (
	"errors"
	"os"
	"sync"
)

// Lines is a file of lines of at most a limit of bytes. Where it would become too
// large whole lines are dropped, and what is left is lines: the first half is written
// through, of what follows the last half is kept and written at Close, with a line
// between them that tells of the cut. It may be written to by several goroutines.
type Lines struct {
	mu      sync.Mutex // guards what follows
	f       *os.File   // nil after Close
	err     error
	limit   int64
	head    int64 // bytes that still may be written through; 0 once a line was kept back
	room    int64 // bytes that tail may have
	tail    [][]byte
	kept    int64 // bytes of tail
	mark    func(Cut) []byte
	dropped Cut
}

// Cut is what was left out of a file.
type Cut struct{ Lines, Bytes int64 }

// CreateLines makes the file as [Create] does. mark returns the line that stands for
// what was left out, with its end.
func CreateLines(dir, name string, limit int64, mark func(Cut) []byte) (*Lines, error) {
	f, err := create(dir, name)
	if err != nil {
		return nil, err
	}
	return &Lines{f: f, limit: limit, head: limit - limit/2, room: limit, mark: mark}, nil
}

// Longest is the length of the longest line that is surely kept while it is the last
// one.
func (l *Lines) Longest() int64 { return l.limit / 2 }

// Add writes a line, which has its end. Nothing is written after Close. A full disk is
// reported by Close.
func (l *Lines) Add(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(len(line))
	if l.f == nil {
		return
	}
	if n <= l.head {
		l.head, l.room = l.head-n, l.room-n
		l.put(line)
		return
	}
	l.head = 0
	l.tail = append(l.tail, append([]byte(nil), line...))
	l.kept += n
	for l.kept > l.room {
		l.drop()
	}
}

// drop drops the oldest line of the tail.
func (l *Lines) drop() {
	n := int64(len(l.tail[0]))
	l.tail[0], l.tail = nil, l.tail[1:]
	l.kept -= n
	l.dropped.Lines++
	l.dropped.Bytes += n
}

func (l *Lines) put(line []byte) {
	if l.err == nil {
		_, l.err = l.f.Write(line)
	}
}

// Close writes what was kept back, and closes the file.
func (l *Lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	if l.dropped.Lines > 0 {
		l.put(l.mark(l.dropped))
	}
	for _, line := range l.tail {
		l.put(line)
	}
	err := errors.Join(l.err, l.f.Close())
	l.f, l.tail = nil, nil
	return err
}
