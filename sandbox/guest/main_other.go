//go:build !linux

package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
)

type processLimit struct{}

// supervise fails: the supervisor runs in Linux sandboxes only.
func supervise(_, _ *os.File, stderr io.Writer, _ string, _ bounds) int {
	_, _ = fmt.Fprintln(stderr, "proctor guest: the supervisor runs on Linux only")
	return 1
}

// wait fails: it is for Linux sandboxes.
func wait(stderr io.Writer) int {
	return supervise(nil, nil, stderr, "", bounds{})
}

// onOwnKernel fails: it is for Linux sandboxes.
func onOwnKernel(_, _ *os.File, stderr io.Writer, _, _ string) int { return wait(stderr) }

func hide() {}

func execSealed() error { return errors.ErrUnsupported }
