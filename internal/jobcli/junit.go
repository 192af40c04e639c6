package jobcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/job/junit"
)

// JUnit are flags that say where a JUnit file goes and what counts as passed in it.
type JUnit struct {
	File   string
	passAt float64
	reward string
}

// Define defines the flags.
func (f *JUnit) Define(fs *pflag.FlagSet) {
	fs.StringVar(&f.File, "junit", "", "write the trials as JUnit XML to this `file`")
	fs.Float64Var(&f.passAt, "pass-at", 1, "a trial passes in JUnit XML from this `reward` on")
	fs.StringVar(&f.reward, "pass-reward", "", "`name` of the reward that decides (default: the only one, else \"reward\", else all)")
}

// check finds out before a run what would fail after it.
func (f *JUnit) check() error {
	switch {
	case math.IsNaN(f.passAt):
		return exitcode.Usagef("--pass-at nan: no reward reaches it")
	case f.File == "" || isDirectory(filepath.Dir(f.File)):
		return nil
	}
	return exitcode.Usagef("--junit %s: there is no directory %q", f.File, filepath.Dir(f.File))
}

// Export writes the trials of a job directory, at once, so that no reader sees half
// of the file; "-" is stdout.
func (f *JUnit) Export(ctx context.Context, stdout io.Writer, dir string) error {
	if err := f.check(); err != nil {
		return err
	}
	r, err := junit.Read(ctx, dir, junit.Options{PassAt: f.passAt, Reward: f.reward})
	if errors.Is(err, fs.ErrNotExist) {
		return exitcode.WithHint(exitcode.Usagef("%q is not a job directory: %w", dir, err), "'proctor job list' lists the jobs")
	}
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := r.Write(&text); err != nil {
		return err
	}
	if f.File == "-" {
		_, err = stdout.Write(text.Bytes())
		return err
	}
	if err := atomicfile.Write(f.File, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing JUnit XML: %w", err)
	}
	return nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
