//go:build !linux

package layerfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

var errLinux = fmt.Errorf("layers are unpacked on Linux only: %w", errors.ErrUnsupported)

// ProbeFormat is the one for ordinary users.
func ProbeFormat(string) Format { return User }

// IsWhiteout reports false.
func IsWhiteout(fs.FileInfo) bool { return false }

// IsOpaque reports false.
func IsOpaque(string) bool { return false }

// Unpack returns errors.ErrUnsupported.
func Unpack(context.Context, string, io.Reader, Format, Limits) (Found, error) {
	return Found{}, errLinux
}

// Pack returns errors.ErrUnsupported.
func Pack(context.Context, io.Writer, string, Format) (Notes, error) { return Notes{}, errLinux }

// Inherited returns errors.ErrUnsupported.
func Inherited([]string, string, []string) ([]Directory, error) { return nil, errLinux }

// MakeDirs returns errors.ErrUnsupported.
func MakeDirs(string, []Directory) error { return errLinux }
