package console_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"charm.land/lipgloss/v2"

	"github.com/proctor-run/proctor/internal/console"
)

// failing takes some bytes, and one write that fails, and then again all.
type failing struct {
	bytes.Buffer
	errs []error
}

func (f *failing) Write(p []byte) (int, error) {
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		if err != nil {
			return 0, err
		}
	}
	return f.Buffer.Write(p)
}

// TestOutput: the first error stays, whoever looked at it, and nothing is written behind it.
func TestOutput(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	w := &failing{errs: []error{nil, full, nil}}
	o := console.NewOutput(w)
	for _, text := range []string{"a", "b", "c"} {
		_, _ = lipgloss.Fprint(o, text)
	}
	if !errors.Is(o.Err(), full) || w.String() != "a" {
		t.Errorf("error %v, written %q", o.Err(), w)
	}
	if console.NewOutput(o) != o || console.Unchecked(o) != io.Writer(w) || console.Unchecked(w) != io.Writer(w) {
		t.Error("an output is wrapped twice, or does not give its writer")
	}
}

// TestOutputFile: the file below is known, and stays open.
func TestOutputFile(t *testing.T) {
	t.Parallel()
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	o := console.NewOutput(f)
	if o.Fd() != f.Fd() || console.NewOutput(io.Discard).Fd() != ^uintptr(0) {
		t.Error("not the file's descriptor")
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(o, "text"); err != nil || o.Err() != nil {
		t.Errorf("closed: %v, %v", err, o.Err())
	}
}
