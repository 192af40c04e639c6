// Package follow reads, line by line, what is added to files that others write and may
// replace.
package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/bounded"
)

// Bounds of what is read, in bytes.
const (
	// maxLook is how much of what was added between two looks is read: more than agents'
	// outputs that are kept have. Of more, the end is read behind a mark.
	maxLook = 32 << 20
	// maxLine is where a longer line is cut in parts.
	maxLine = 64 << 10
	chunk   = 64 << 10
)

// All is the number of lines that asks for all of a file.
const All = -1

// Log is a log that lies in one or several files, of which each may be moved to another
// name while it is followed. The zero value has read nothing.
type Log struct {
	parts []*part // in the order in which they were found
}

// part is one file of a log.
type part struct {
	info   fs.FileInfo // tells it from others
	offset int64       // up to where it has been read
	rest   []byte      // of a line that has no end yet
	after  bool        // what was read last is a carriage return
	skip   bool        // up to the next line end, for its beginning was left out
}

// Look reads what is new in the file of this name and hands on each whole line, without
// its end, which may be a carriage return as well: some programs show so how far they are.
// Of a file that is seen for the first time, no more than so many lines are handed on,
// the last ones of those that are there. A file that has become shorter is read anew.
//
// The file may be anybody's: see [bounded.OpenAt]; a link is none. That there is no file
// is no error.
func (l *Log) Look(ctx context.Context, root *os.Root, name string, lines int, each func(line string) error) error {
	if at, err := root.Lstat(name); err == nil && at.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s: %w, this is a link", filepath.Join(root.Name(), name), bounded.ErrNotRegular)
	}
	file, err := bounded.OpenAt(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	p := l.find(info)
	if p == nil || info.Size() < p.offset {
		// What was begun elsewhere has no end any more.
		if err := l.Flush(each); err != nil {
			return err
		}
	}
	if p == nil {
		p = &part{}
		l.parts = append(l.parts, p)
		if lines >= 0 {
			return p.last(ctx, file, info, lines, each)
		}
	}
	return p.read(ctx, file, info, each)
}

// Flush hands on lines that have no end, when nothing is to come.
func (l *Log) Flush(each func(line string) error) error {
	for _, p := range l.parts {
		if rest := p.rest; len(rest) > 0 {
			p.rest = nil
			if err := each(string(rest)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Log) find(info fs.FileInfo) *part {
	for _, p := range l.parts {
		if os.SameFile(p.info, info) {
			return p
		}
	}
	return nil
}

// last hands on the last lines of a file that is read for the first time.
func (p *part) last(ctx context.Context, file *os.File, info fs.FileInfo, lines int, each func(string) error) error {
	var kept []string
	err := p.read(ctx, file, info, func(line string) error {
		if kept = append(kept, line); len(kept) > lines {
			kept = kept[1:]
		}
		return nil
	})
	for _, line := range kept {
		if err := each(line); err != nil {
			return err
		}
	}
	return err
}

// read reads up to where the file ends now.
func (p *part) read(ctx context.Context, file *os.File, info fs.FileInfo, each func(string) error) error {
	if p.info = info; info.Size() < p.offset {
		p.offset, p.after, p.skip = 0, false, false
	}
	if from := info.Size() - maxLook; from > p.offset {
		mark := bounded.CutMark(from - p.offset)
		p.offset, p.rest, p.after, p.skip = from, nil, false, true
		if err := each(string(bytes.TrimSpace([]byte(mark)))); err != nil {
			return err
		}
	}
	buf := make([]byte, chunk)
	for p.offset < info.Size() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := file.ReadAt(buf[:min(chunk, info.Size()-p.offset)], p.offset)
		p.offset += int64(n)
		if err := p.split(buf[:n], each); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil // it has become shorter, which the next look sees
		}
		if err != nil {
			return fmt.Errorf("reading %q: %w", file.Name(), err)
		}
	}
	return nil
}

// split hands on the lines that end in data.
func (p *part) split(data []byte, each func(string) error) error {
	for len(data) > 0 {
		at := bytes.IndexAny(data, "\r\n")
		if at < 0 {
			return p.add(data, each)
		}
		if err := p.add(data[:at], each); err != nil {
			return err
		}
		// Of "\r\n" the first alone ends a line, and so does the last of "\r\r".
		ends := data[at] == '\n' && !p.after || data[at] == '\r' && len(p.rest) > 0
		p.after = data[at] == '\r'
		data = data[at+1:]
		if line := p.rest; ends && !p.skip {
			p.rest = nil
			if err := each(string(line)); err != nil {
				return err
			}
		}
		p.skip = false
	}
	return nil
}

// add lengthens the line that has no end yet.
func (p *part) add(data []byte, each func(string) error) error {
	if len(data) > 0 {
		p.after = false
	}
	if p.skip {
		return nil
	}
	for len(p.rest)+len(data) > maxLine {
		n := maxLine - len(p.rest)
		line := string(p.rest) + string(data[:n])
		p.rest, data = nil, data[n:]
		if err := each(line); err != nil {
			return err
		}
	}
	p.rest = append(p.rest, data...)
	return nil
}
