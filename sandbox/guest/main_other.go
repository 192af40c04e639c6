//go:build !linux

package guest

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/proctor-run/proctor/sandbox/internal/native"
)

// supervise fails: the supervisor runs in Linux sandboxes only.
func supervise(_, _ *os.File, stderr io.Writer, _ string, _ native.Scores) int {
	_, _ = fmt.Fprintln(stderr, "proctor guest: the supervisor runs on Linux only")
	return 1
}

func execSealed() error { return errors.ErrUnsupported }
