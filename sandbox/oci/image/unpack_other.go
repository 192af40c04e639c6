//go:build !linux

package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

var errLinux = fmt.Errorf("layers are unpacked on Linux only: %w", errors.ErrUnsupported)

func probeFormat(string) format { return formatUser }

func isWhiteoutInfo(fs.FileInfo) bool { return false }

func isOpaque(string) bool { return false }

func syncTree(string) error { return nil }

func spread(string) {}

func freeBytes(string) (int64, bool) { return 0, false }

func unpack(context.Context, string, io.Reader, format, Limits) (layerInfo, error) {
	return layerInfo{}, errLinux
}

func (s *Store) compose(context.Context, []Layer) ([]string, error) { return nil, errLinux }

func (s *Store) takeUpper(context.Context, string) (Layer, error) { return Layer{}, errLinux }

func pack(context.Context, io.Writer, string, format) (Notes, error) { return Notes{}, errLinux }
