package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/layerfs"
)

// compose turns the layers of an image, lowest first, into the keys to mount.
//
// Two things that a layer says cannot be said by its own directory, because
// that is shared by images in which it lies on different layers: an opaque root
// drops everything below it, and a directory that the layer has no entry for
// looks like the lower layers' directory of that name, for which a synthetic
// layer is put on top.
func (s *layerSet) compose(ctx context.Context, layers []Layer) ([]string, error) {
	var stack []Layer
	for _, layer := range layers {
		info := s.info(keyOf(layer))
		if info.OpaqueRoot {
			stack = nil
		}
		lower := stack
		stack = append(stack, layer)
		dirs, err := layerfs.Inherited(dirsOf(lower), layer.Dir, info.Implicit)
		if err != nil {
			return nil, err
		}
		if len(dirs) == 0 {
			continue
		}
		synthetic, err := s.synthetic(ctx, dirs)
		if err != nil {
			return nil, err
		}
		stack = append(stack, synthetic)
	}
	if len(stack) > layerfs.MaxLayers {
		return nil, fmt.Errorf("composing the image: %w: %d layers to mount, at most %d", ErrLimit, len(stack), layerfs.MaxLayers)
	}
	keys := make([]string, len(stack))
	for i, l := range stack {
		keys[i] = keyOf(l)
	}
	return keys, nil
}

func dirsOf(layers []Layer) []string {
	dirs := make([]string, len(layers))
	for i, l := range layers {
		dirs[i] = l.Dir
	}
	return dirs
}

// synthetic returns a layer of nothing but directories.
func (s *layerSet) synthetic(ctx context.Context, dirs []layerfs.Directory) (Layer, error) {
	list, err := json.Marshal(dirs)
	if err != nil {
		return Layer{}, fmt.Errorf("making a synthetic layer: %w", err)
	}
	digest := blob.DigestOf(list)
	return s.ensure(ctx, "dirs-"+fileKey(digest), func(_ context.Context, diff string) (layerInfo, error) {
		if err := layerfs.MakeDirs(diff, dirs); err != nil {
			return layerInfo{}, fmt.Errorf("making a synthetic layer: %w", err)
		}
		return layerInfo{DiffID: digest, Synthetic: true, Notes: Notes{Entries: len(dirs)}}, nil
	})
}

// takeUpper moves an overlay's upper directory into the store as a layer.
func (s *layerSet) takeUpper(ctx context.Context, upper string) (Layer, error) {
	sum := sha256.New()
	notes, err := layerfs.Pack(ctx, sum, upper, s.disk.format)
	if err != nil {
		return Layer{}, err
	}
	diffID := "sha256:" + hex.EncodeToString(sum.Sum(nil))
	layer, err := s.ensure(ctx, fileKey(diffID), func(ctx context.Context, diff string) (layerInfo, error) {
		if err := os.Remove(diff); err != nil {
			return layerInfo{}, fmt.Errorf("moving %q into the store: %w", upper, err)
		}
		err := os.Rename(upper, diff)
		if errors.Is(err, syscall.EXDEV) {
			return s.copyUpper(ctx, upper, diff, diffID)
		}
		if err != nil {
			return layerInfo{}, fmt.Errorf("moving %q into the store: %w", upper, err)
		}
		return layerInfo{DiffID: diffID, Notes: Notes(notes)}, nil
	})
	if err != nil {
		return Layer{}, err
	}
	// Where the store had the content already, the directory was not moved.
	return layer, layerfs.RemoveTree(upper)
}

// copyUpper is the long way into a store on another file system.
func (s *layerSet) copyUpper(ctx context.Context, upper, diff, diffID string) (layerInfo, error) {
	if err := os.Mkdir(diff, 0o700); err != nil {
		return layerInfo{}, fmt.Errorf("copying %q into the store: %w", upper, err)
	}
	pr, pw := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		_, err := layerfs.Pack(ctx, pw, upper, s.disk.format)
		pw.CloseWithError(err)
		packed <- err
	}()
	found, err := layerfs.Unpack(ctx, diff, pr, s.disk.format, s.limits)
	if err == nil {
		_, err = io.Copy(io.Discard, pr) // the end of the archive
	}
	pr.CloseWithError(err)
	if err = errors.Join(err, <-packed); err != nil {
		return layerInfo{}, fmt.Errorf("copying %q into the store: %w", upper, err)
	}
	return infoOf(diffID, found), nil
}
