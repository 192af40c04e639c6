package console

import (
	"io"
	"sync"
)

// Output is the standard output of a program. It remembers the first write that failed,
// so that no command has to look at each of its writes for what was printed to be whole,
// or the exit code to say that it is not. Nothing is written after it: what is there is
// a beginning of the whole.
type Output struct {
	w io.Writer

	mu  sync.Mutex // guards err
	err error
}

// NewOutput returns the output that writes to w. An output is its own.
func NewOutput(w io.Writer) *Output {
	if o, ok := w.(*Output); ok {
		return o
	}
	return &Output{w: w}
}

// Unchecked is what an output writes to: for protocols, whose server knows what a write
// that fails means. Any other writer is returned as it is.
func Unchecked(w io.Writer) io.Writer {
	if o, ok := w.(*Output); ok {
		return o.w
	}
	return w
}

func (o *Output) Write(p []byte) (int, error) {
	if err := o.Err(); err != nil {
		return 0, err
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// Err is the error of the first write that failed; nil where none did.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Fd tells those who style what they print whether it goes to a terminal; they take no
// writer for one that does not have all methods of a file.
func (o *Output) Fd() uintptr {
	if f, ok := o.w.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0) // of no file
}

// Read reads nothing: it is an output.
func (*Output) Read([]byte) (int, error) { return 0, io.EOF }

// Close leaves the output open, which is the program's until its end.
func (*Output) Close() error { return nil }
