package docker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/proctor-run/proctor/internal/procfs"
)

// birth names one process of a container for as long as the machine runs:
// pids are reused, start times (in clock ticks since boot) tell the users of
// one pid apart.
type birth struct {
	pid   int
	start uint64
}

func (b birth) String() string { return fmt.Sprintf("%d:%d", b.pid, b.start) }

// The streams of the engine's multiplexed format (Engine API, attach): each
// frame has the stream's number, three unused bytes and a 32-bit length.
const (
	frameHeader  = 8
	frameStdin   = 0
	frameStdout  = 1
	frameStderr  = 2
	frameFailure = 3
)

// demultiplex copies frames to the two streams until the source ends. Memory
// stays bounded whatever lengths the source claims.
func demultiplex(src io.Reader, stdout, stderr io.Writer) error {
	r := bufio.NewReaderSize(src, 64<<10)
	var head [frameHeader]byte
	buf := make([]byte, 64<<10)
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			if err == io.EOF {
				return nil
			}
			return fmt.Errorf("reading a frame of output: %w", err)
		}
		var dst io.Writer
		switch head[0] {
		case frameStdin, frameStdout:
			dst = stdout
		case frameStderr:
			dst = stderr
		case frameFailure:
			text, _ := io.ReadAll(io.LimitReader(r, 4<<10))
			return fmt.Errorf("the engine reports: %s", bytes.TrimSpace(text))
		default:
			return fmt.Errorf("output frame of unknown stream %d", head[0])
		}
		size := int64(binary.BigEndian.Uint32(head[4:]))
		if n, err := io.CopyBuffer(onlyWriter{dst}, io.LimitReader(r, size), buf); err != nil {
			return fmt.Errorf("reading a frame of output: %w", err)
		} else if n < size {
			return fmt.Errorf("output frame ends after %d of %d bytes: %w", n, size, io.ErrUnexpectedEOF)
		}
	}
}

// onlyWriter hides ReadFrom, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }

// sink passes output to a command's writer until that fails or is closed.
type sink struct {
	mu   sync.Mutex
	w    io.Writer // nil: dropped
	over bool
}

// Write never fails: a command continues without its reader.
func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w != nil && !s.over && len(p) > 0 {
		if n, err := s.w.Write(p); err != nil || n < len(p) {
			s.over = true
		}
	}
	return len(p), nil
}

// close waits for a write under way; later ones are dropped.
func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// maxLine bounds what follows a frame word: a stat line or an exit code.
const maxLine = 4 << 10

// framed is one output stream of the wrapper: perhaps a first line with the
// wrapper's birth, then output, then the exit code. Each of the two follows
// the frame word, which the command does not know.
type framed struct {
	word   []byte
	sink   *sink
	born   func(birth)    // called once, with the first line; nil: there is none
	ended  func(code int) // called once, when the exit code is read
	buf    []byte         // not yet understood
	state  int            // opening, body or over
	result int
}

const (
	opening = iota
	body
	over
)

func newFramed(word string, to *sink, born func(birth), ended func(int)) *framed {
	f := &framed{word: []byte(word), sink: to, born: born, ended: ended, state: body}
	if born != nil {
		f.state = opening
	}
	return f
}

// Write takes the stream apart. It never fails.
func (f *framed) Write(p []byte) (int, error) {
	if f.state == over {
		return len(p), nil
	}
	f.buf = append(f.buf, p...)
	if f.state == opening && !f.open() {
		return len(p), nil
	}
	f.pass()
	return len(p), nil
}

// open reads the first line. It returns false while more is needed. A stream
// that begins otherwise is the engine's own message.
func (f *framed) open() bool {
	if len(f.buf) < len(f.word) && bytes.HasPrefix(f.word, f.buf) {
		return false
	}
	line, found := bytes.CutPrefix(f.buf, f.word)
	if !found {
		f.state = body
		return true
	}
	end := bytes.IndexByte(line, '\n')
	if end < 0 {
		return len(line) > maxLine
	}
	if root, err := procfs.ParseStat(line[:end]); err == nil {
		f.buf = append(f.buf[:0], line[end+1:]...)
		f.born(birth{pid: root.PID, start: root.Start})
	}
	f.state = body
	return true
}

// pass hands on all that cannot be the begin of the end.
func (f *framed) pass() {
	for {
		i := bytes.Index(f.buf, f.word)
		if i < 0 {
			f.emit(len(f.buf) - partial(f.buf, f.word))
			return
		}
		f.emit(i)
		line := f.buf[len(f.word):]
		end := bytes.IndexByte(line, '\n')
		if end < 0 && len(line) <= maxLine {
			return
		}
		if end >= 0 {
			if code, err := strconv.ParseUint(string(line[:end]), 10, 8); err == nil {
				f.state, f.buf, f.result = over, nil, int(code)
				f.ended(f.result)
				return
			}
		}
		f.emit(len(f.word)) // somebody's guess
	}
}

func (f *framed) emit(n int) {
	if n > 0 {
		_, _ = f.sink.Write(f.buf[:n])
		f.buf = append(f.buf[:0], f.buf[n:]...)
	}
}

// finish hands on what was held back, when the stream ends.
func (f *framed) finish() {
	if f.state != over {
		f.emit(len(f.buf))
	}
}

// partial is the length of the longest end of buf that begins word.
func partial(buf, word []byte) int {
	for n := min(len(buf), len(word)-1); n > 0; n-- {
		if bytes.HasPrefix(word, buf[len(buf)-n:]) {
			return n
		}
	}
	return 0
}
