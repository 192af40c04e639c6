package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proctor-run/proctor/internal/clock"
)

// format says under which names overlay's attributes are kept.
type format string

const (
	formatTrusted format = "trusted" // by root, for ordinary overlay mounts
	formatUser    format = "user"    // by anyone, for mounts with userxattr
)

// lockPoll is how often a process looks whether another one has finished a layer.
const lockPoll = 50 * time.Millisecond

// layerFile holds a layerInfo beside an unpacked layer.
const layerFile = "layer.json"

// layerInfo is what the store notes beside an unpacked layer, in layer.json.
type layerInfo struct {
	DiffID string `json:"diff_id"`
	// Boot of the machine without which the layer counts for nothing, because
	// not all of it was written out; empty for one that is on disk.
	Boot      string `json:"boot,omitempty"`
	Synthetic bool   `json:"synthetic,omitempty"`
	// OpaqueRoot: the layer hides all below it. Overlay knows no opaque root,
	// so an image leaves out what lies below.
	OpaqueRoot bool `json:"opaque_root,omitempty"`
	// Implicit are the directories that the layer has no entries for, only
	// something inside; parents before children.
	Implicit []string `json:"implicit,omitempty"`
	Notes    Notes    `json:"notes"`
}

// claim is a layer that this store handed out: the shared lock keeps every
// process from removing it.
type claim struct {
	lock  *flock.Flock
	layer Layer
	info  layerInfo
}

func (s *Store) layerDir(key string) string {
	return filepath.Join(s.dir, "layers", string(s.format), key)
}

func (s *Store) layerLock(key string) *flock.Flock {
	return flock.New(filepath.Join(s.dir, "locks", string(s.format)+"-"+key+lockSuffix), flock.SetPermissions(0o600))
}

// claim takes a layer that is in the store. It does not wait: a layer that
// another process is making or removing is not there.
func (s *Store) claim(key string) (Layer, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Layer{}, false, errClosed
	}
	if c, ok := s.claims[key]; ok {
		return c.layer, true, nil
	}
	lock := s.layerLock(key)
	ok, err := lock.TryRLock()
	if err != nil || !ok {
		return Layer{}, false, errors.Join(err, release(lock))
	}
	info, ok, err := s.readLayer(key)
	if err != nil || !ok {
		return Layer{}, false, errors.Join(err, release(lock))
	}
	if info.Boot != "" {
		s.sealer.add(key)
	}
	layer := Layer{
		DiffID:    info.DiffID,
		Dir:       filepath.Join(s.layerDir(key), "diff"),
		Synthetic: info.Synthetic,
		Notes:     info.Notes,
	}
	s.claims[key] = claim{lock: lock, layer: layer, info: info}
	return layer, true, nil
}

func (s *Store) infoOf(key string) layerInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims[key].info
}

// keyOf is the inverse of layerDir.
func keyOf(l Layer) string { return filepath.Base(filepath.Dir(l.Dir)) }

// ensureLayer returns the layer of a key, claimed; fill makes its content in an
// empty directory diff when the store has not got it.
func (s *Store) ensureLayer(ctx context.Context, key string, fill func(ctx context.Context, diff string) (layerInfo, error)) (Layer, error) {
	return s.layers.do(ctx, key, nil, func(ctx context.Context, _ func(string)) (Layer, error) {
		for {
			layer, ok, err := s.claim(key)
			if ok || err != nil {
				return layer, err
			}
			free, err := s.makeLayer(ctx, key, fill)
			if err != nil {
				return Layer{}, err
			}
			if free {
				continue
			}
			if err := clock.Sleep(ctx, lockPoll); err != nil {
				return Layer{}, err
			}
		}
	})
}

// makeLayer holds the layer's lock alone, so that of several processes one
// works and the others find the result. Where another one has the lock it does
// nothing, and free is false.
func (s *Store) makeLayer(ctx context.Context, key string, fill func(ctx context.Context, diff string) (layerInfo, error)) (free bool, err error) {
	lock := s.layerLock(key)
	defer func() { err = errors.Join(err, release(lock)) }()
	if ok, err := tryLock(lock); err != nil || !ok {
		return false, err
	}
	if _, ok, err := s.readLayer(key); ok || err != nil {
		return true, err
	}
	work, err := s.session.mkdir("layer-*")
	if err != nil {
		return true, fmt.Errorf("making a layer: %w", err)
	}
	err = s.fillLayer(ctx, key, work, fill)
	if err != nil {
		return true, errors.Join(err, removeTree(work))
	}
	return true, nil
}

// fillLayer publishes a layer by renaming it when it is whole. It is sealed
// when it is claimed.
func (s *Store) fillLayer(ctx context.Context, key, work string, fill func(ctx context.Context, diff string) (layerInfo, error)) error {
	diff := filepath.Join(work, "diff")
	if err := os.Mkdir(diff, 0o700); err != nil {
		return fmt.Errorf("making a layer: %w", err)
	}
	info, err := fill(ctx, diff)
	if err != nil {
		return err
	}
	if err := s.writeLayer(work, info); err != nil {
		return err
	}
	// What a power failure left damaged is in the way.
	if err := removeTree(s.layerDir(key)); err != nil {
		return fmt.Errorf("making a layer: %w", err)
	}
	if err := os.Rename(work, s.layerDir(key)); err != nil {
		return fmt.Errorf("making a layer: %w", err)
	}
	return nil
}

// unpackLayer returns the layer with a diff id, unpacking it from its source
// when the store has not got it. Pulls share that work, and whoever came first
// gave it its source: what fails there, or ends because that pull has left and
// has closed its source, is tried again from this one.
func (s *Store) unpackLayer(ctx context.Context, diffID v1.Hash, source layerSource, count func(int)) (Layer, error) {
	key := fileKey(diffID.String())
	for {
		layer, err := s.ensureLayer(ctx, key, func(ctx context.Context, diff string) (layerInfo, error) {
			info, err := s.unpackInTurn(ctx, diffID, source, diff, count)
			if err != nil {
				err = &sourceError{source.origin(), err}
			}
			return info, err
		})
		failed, ok := errors.AsType[*sourceError](err)
		if !ok || failed.origin == source.origin() || ctx.Err() != nil {
			return layer, err
		}
	}
}

// sourceError says where a layer that could not be unpacked came from.
type sourceError struct {
	origin any
	err    error
}

func (e *sourceError) Error() string { return e.err.Error() }

func (e *sourceError) Unwrap() error { return e.err }

// unpackInTurn bounds how many layers are unpacked at a time.
func (s *Store) unpackInTurn(ctx context.Context, diffID v1.Hash, source layerSource, diff string, count func(int)) (layerInfo, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return layerInfo{}, context.Cause(ctx)
	}
	return s.unpackFrom(ctx, diffID, source, diff, count)
}

func (s *Store) unpackFrom(ctx context.Context, diffID v1.Hash, source layerSource, diff string, count func(int)) (info layerInfo, err error) {
	stored, err := source.open(ctx, s.session, count)
	if err != nil {
		return layerInfo{}, err
	}
	defer func() { err = errors.Join(err, stored.Close()) }()
	plain, _, err := Decompress(&contextReader{ctx, stored})
	if err != nil {
		return layerInfo{}, worse(err, stored)
	}
	defer func() { _ = plain.Close() }()
	inflated := readAhead(plain)
	defer func() { _ = inflated.Close() }()
	content, err := newVerifier(inflated, diffID, -1)
	if err != nil {
		return layerInfo{}, err
	}
	bounded := &boundedReader{r: content, left: s.limits.Bytes, limit: s.limits.Bytes}
	info, err = unpack(ctx, diff, bounded, s.format, s.limits)
	if err != nil {
		_ = inflated.Close() // it reads from stored too
		return layerInfo{}, worse(err, stored)
	}
	// The archive ends before its stream does: with padding, and in what is
	// compressed possibly with more.
	if _, err := io.Copy(io.Discard, bounded); err != nil {
		return layerInfo{}, fmt.Errorf("reading the end of the layer: %w", err)
	}
	_ = inflated.Close()
	if _, err := io.Copy(io.Discard, stored); err != nil {
		return layerInfo{}, fmt.Errorf("reading the end of the layer: %w", err)
	}
	if err := stored.check(); err != nil {
		return layerInfo{}, err
	}
	info.DiffID = diffID.String()
	return info, content.check("unpacked layer")
}

// worse prefers, to the error that damaged content led to, the one that says
// that it is damaged.
func worse(err error, stored layerStream) error {
	if _, copyErr := io.Copy(io.Discard, stored); copyErr != nil {
		return err
	}
	if damaged := stored.check(); damaged != nil {
		return damaged
	}
	return err
}

// boundedReader ends a layer that is larger than allowed with an error.
type boundedReader struct {
	r           io.Reader
	left, limit int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		var one [1]byte
		if n, err := b.r.Read(one[:]); n == 0 {
			return 0, err
		}
		return 0, fmt.Errorf("%w: more than %d bytes", ErrLimit, b.limit)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}
