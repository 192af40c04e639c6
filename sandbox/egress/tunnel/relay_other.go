//go:build !linux

package tunnel

import (
	"errors"
	"io"
)

// Relay runs in Linux sandboxes only.
func Relay(io.Reader, io.Writer, uint16) error { return errors.New("the relay runs on Linux only") }
