package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/layerfs"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// lockPoll is how often a process looks whether another one has finished a layer.
const lockPoll = 50 * time.Millisecond

// claim is a layer that this store handed out: the shared lock keeps every
// process from removing it.
type claim struct {
	lock  *flock.Flock
	layer Layer
	info  layerInfo
}

// layerSet is the layers of a store: those that it handed out, and the work on those
// that are not there yet.
type layerSet struct {
	disk    *disk
	limits  layerfs.Limits
	slots   chan struct{} // bounds layers in work
	flights *flight[Layer]
	sealer  sealer

	mu     sync.Mutex
	claims map[string]claim // by key; guarded by mu
	closed bool             // guarded by mu
}

func newLayerSet(d *disk, limits layerfs.Limits, parallel int) *layerSet {
	return &layerSet{
		disk:    d,
		limits:  limits,
		slots:   make(chan struct{}, parallel),
		flights: newFlight[Layer](),
		sealer:  sealer{dir: d.dir, seal: d.sealLayer},
		claims:  map[string]claim{},
	}
}

// shut has no more layers claimed. It reports whether that was allowed before.
func (s *layerSet) shut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := !s.closed
	s.closed = true
	return open
}

// close ends the work, waits until the claimed layers are on disk, and gives up the
// claims. The set must be shut.
func (s *layerSet) close() error {
	s.flights.close()
	errs := []error{s.sealer.end()}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.claims {
		errs = append(errs, release(c.lock))
	}
	s.claims = nil
	return errors.Join(errs...)
}

// claim takes a layer that is in the store. It does not wait: a layer that
// another process is making or removing is not there.
func (s *layerSet) claim(key string) (Layer, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Layer{}, false, errClosed
	}
	if c, ok := s.claims[key]; ok {
		return c.layer, true, nil
	}
	lock := s.disk.layerLock(key)
	ok, err := lock.TryRLock()
	if err != nil || !ok {
		return Layer{}, false, errors.Join(err, release(lock))
	}
	info, ok, err := s.disk.readLayer(key)
	if err != nil || !ok {
		return Layer{}, false, errors.Join(err, release(lock))
	}
	if info.Boot != "" {
		s.sealer.add(key)
	}
	layer := Layer{
		DiffID:    info.DiffID,
		Dir:       filepath.Join(s.disk.layerDir(key), "diff"),
		Synthetic: info.Synthetic,
		Notes:     info.Notes,
	}
	s.claims[key] = claim{lock: lock, layer: layer, info: info}
	return layer, true, nil
}

func (s *layerSet) info(key string) layerInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims[key].info
}

// keyOf is the inverse of layerDir.
func keyOf(l Layer) string { return filepath.Base(filepath.Dir(l.Dir)) }

// ensure returns the layer of a key, claimed; fill makes its content in an
// empty directory diff when the store has not got it.
func (s *layerSet) ensure(ctx context.Context, key string, fill func(ctx context.Context, diff string) (layerInfo, error)) (Layer, error) {
	return s.flights.do(ctx, key, nil, func(ctx context.Context, _ func(string)) (Layer, error) {
		for {
			layer, ok, err := s.claim(key)
			if ok || err != nil {
				return layer, err
			}
			free, err := s.make(ctx, key, fill)
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

// make holds the layer's lock alone, so that of several processes one
// works and the others find the result. Where another one has the lock it does
// nothing, and free is false.
func (s *layerSet) make(ctx context.Context, key string, fill func(ctx context.Context, diff string) (layerInfo, error)) (free bool, err error) {
	lock := s.disk.layerLock(key)
	defer func() { err = errors.Join(err, release(lock)) }()
	if ok, err := tryLock(lock); err != nil || !ok {
		return false, err
	}
	if _, ok, err := s.disk.readLayer(key); ok || err != nil {
		return true, err
	}
	work, err := s.disk.session.mkdir("layer-*")
	if err != nil {
		return true, fmt.Errorf("making a layer: %w", err)
	}
	err = s.fill(ctx, key, work, fill)
	if err != nil {
		return true, errors.Join(err, layerfs.RemoveTree(work))
	}
	return true, nil
}

// fill publishes a layer by renaming it when it is whole. It is sealed
// when it is claimed.
func (s *layerSet) fill(ctx context.Context, key, work string, fill func(ctx context.Context, diff string) (layerInfo, error)) error {
	diff := filepath.Join(work, "diff")
	if err := os.Mkdir(diff, 0o700); err != nil {
		return fmt.Errorf("making a layer: %w", err)
	}
	info, err := fill(ctx, diff)
	if err != nil {
		return err
	}
	if err := s.disk.writeLayer(work, info); err != nil {
		return err
	}
	// What a power failure left damaged is in the way.
	if err := layerfs.RemoveTree(s.disk.layerDir(key)); err != nil {
		return fmt.Errorf("making a layer: %w", err)
	}
	if err := os.Rename(work, s.disk.layerDir(key)); err != nil {
		return fmt.Errorf("making a layer: %w", err)
	}
	return nil
}

// unpack returns the layer with a diff id, unpacking it from its source
// when the store has not got it. Pulls share that work, and whoever came first
// gave it its source: what fails there, or ends because that pull has left and
// has closed its source, is tried again from this one.
func (s *layerSet) unpack(ctx context.Context, diffID v1.Hash, from source.Layer, count func(int)) (Layer, error) {
	key := fileKey(diffID.String())
	for {
		layer, err := s.ensure(ctx, key, func(ctx context.Context, diff string) (layerInfo, error) {
			info, err := s.unpackInTurn(ctx, diffID, from, diff, count)
			if err != nil {
				err = &sourceError{from.Origin(), err}
			}
			return info, err
		})
		failed, ok := errors.AsType[*sourceError](err)
		if !ok || failed.origin == from.Origin() || ctx.Err() != nil {
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
func (s *layerSet) unpackInTurn(ctx context.Context, diffID v1.Hash, from source.Layer, diff string, count func(int)) (layerInfo, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return layerInfo{}, context.Cause(ctx)
	}
	return s.unpackFrom(ctx, diffID, from, diff, count)
}

func (s *layerSet) unpackFrom(ctx context.Context, diffID v1.Hash, from source.Layer, diff string, count func(int)) (_ layerInfo, err error) {
	stored, err := from.Open(ctx, count)
	if err != nil {
		return layerInfo{}, err
	}
	defer func() { err = errors.Join(err, stored.Close()) }()
	plain, _, err := blob.Decompress(blob.WithContext(ctx, stored))
	if err != nil {
		return layerInfo{}, worse(err, stored)
	}
	defer func() { _ = plain.Close() }()
	inflated := blob.ReadAhead(plain)
	defer func() { _ = inflated.Close() }()
	content, err := blob.NewVerifier(inflated, diffID, -1)
	if err != nil {
		return layerInfo{}, err
	}
	bounded := blob.Bound(content, s.limits.Bytes)
	found, err := layerfs.Unpack(ctx, diff, bounded, s.disk.format, s.limits)
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
	if err := stored.Check(); err != nil {
		return layerInfo{}, err
	}
	return infoOf(diffID.String(), found), content.Check("unpacked layer")
}

// worse prefers, to the error that damaged content led to, the one that says
// that it is damaged.
func worse(err error, stored source.Stream) error {
	if _, copyErr := io.Copy(io.Discard, stored); copyErr != nil {
		return err
	}
	if damaged := stored.Check(); damaged != nil {
		return damaged
	}
	return err
}

// infoOf is what the store notes of a layer in which unpacking found something.
func infoOf(diffID string, found layerfs.Found) layerInfo {
	return layerInfo{DiffID: diffID, OpaqueRoot: found.OpaqueRoot, Implicit: found.Implicit, Notes: Notes(found.Notes)}
}
