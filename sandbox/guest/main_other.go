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
func supervise(_, _ *os.File, stderr io.Writer, _ string, _ native.Scores, _ int64) int {
	_, _ = fmt.Fprintln(stderr, "proctor guest: the supervisor runs on Linux only")
	return 1
}

// wait fails: it is for Linux sandboxes.
func wait(stderr io.Writer) int {
	return supervise(nil, nil, stderr, "", native.Scores{}, 0)
}

// onOwnKernel fails: it is for Linux sandboxes.
func onOwnKernel(_, _ *os.File, stderr io.Writer, _, _ string) int { return wait(stderr) }

func hide() {}

func execSealed() error { return errors.ErrUnsupported }
