//go:build !linux

package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Main is the supervisor, which runs in Linux sandboxes only.
func Main(_, _ *os.File, stderr io.Writer, _ string) int {
	_, _ = fmt.Fprintln(stderr, "proctor guest: the supervisor runs on Linux only")
	return 1
}

func execSealed() error { return errors.ErrUnsupported }
