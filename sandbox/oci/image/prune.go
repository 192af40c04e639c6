package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Pruned says what Prune removed.
type Pruned struct {
	Images int
	Layers int
	Caches int   // of builds; by Shrink and RemoveUnused alone
	Bytes  int64 // file content of the removed layers and caches
}

// Prune removes the images that are not in keep, and the layers that no
// remaining image has. What a Store in this or another process handed out and
// did not Close stays.
func (s *Store) Prune(ctx context.Context, keep ...Image) (Pruned, error) {
	kept := map[string]bool{}
	for _, img := range keep {
		kept[img.ID] = true
	}
	return s.prune(ctx, func(id string) bool { return kept[id] }, false)
}

// Unused is what PruneUnused is asked to remove.
type Unused struct {
	// Prefix of the references that may go, "" for all.
	Prefix string
	// Since: only what nobody asked the store for since then.
	Since time.Time
	// Dry: tell what would be removed, and remove nothing.
	Dry bool
}

// PruneUnused removes the references that nobody asked for any more, with the
// images that no other reference names, and the layers that no remaining image
// has. As with Prune, layers that some Store has handed out stay.
func (s *Store) PruneUnused(ctx context.Context, u Unused) (Pruned, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "refs"))
	if err != nil {
		return Pruned{}, fmt.Errorf("pruning images: %w", err)
	}
	wanted, dropped := map[string]bool{}, map[string]bool{}
	var old []string
	for _, e := range entries {
		path := filepath.Join(s.dir, "refs", e.Name())
		var rec refRecord
		ok, err := readJSON(path, &rec)
		if err != nil {
			return Pruned{}, fmt.Errorf("pruning images: %w", err)
		}
		info, err := e.Info()
		if err != nil || !ok {
			continue // removed meanwhile, or damaged
		}
		if strings.HasPrefix(rec.Ref, u.Prefix) && info.ModTime().Before(u.Since) {
			dropped[rec.ID] = true
			old = append(old, path)
			continue
		}
		wanted[rec.ID] = true
	}
	for _, path := range old {
		if u.Dry {
			break
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return Pruned{}, fmt.Errorf("pruning images: %w", err)
		}
	}
	if len(old) == 0 {
		return Pruned{}, nil
	}
	return s.prune(ctx, func(id string) bool { return wanted[id] || !dropped[id] }, u.Dry)
}

// prune removes the images that keep does not want.
func (s *Store) prune(ctx context.Context, keep func(id string) bool, dry bool) (Pruned, error) {
	s.mu.Lock()
	held := maps.Clone(s.held)
	s.mu.Unlock()

	var done Pruned
	needed, err := s.pruneImages(func(id string) bool { return held[id] || keep(id) }, dry, &done)
	if err != nil {
		return done, fmt.Errorf("pruning images: %w", err)
	}
	if !dry {
		if err := s.pruneRefs(); err != nil {
			return done, fmt.Errorf("pruning references: %w", err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, "layers", string(s.format)))
	if err != nil {
		return done, fmt.Errorf("pruning layers: %w", err)
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		if needed[e.Name()] {
			continue
		}
		if err := s.pruneLayer(e.Name(), dry, &done); err != nil {
			return done, fmt.Errorf("pruning layer %s: %w", e.Name(), err)
		}
	}
	return done, nil
}

// pruneImages removes images and returns the keys of the layers that the
// others have.
func (s *Store) pruneImages(keep func(id string) bool, dry bool, done *Pruned) (needed map[string]bool, err error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "images"))
	if err != nil {
		return nil, err
	}
	needed = map[string]bool{}
	suffix := "." + string(s.format) + ".json"
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) {
			continue // of the other format, with layers of its own
		}
		path := filepath.Join(s.dir, "images", e.Name())
		var rec record
		ok, err := readJSON(path, &rec)
		if err != nil {
			return nil, err
		}
		if ok && keep(digestOf(rec.Config)) {
			for _, key := range rec.Layers {
				needed[key] = true
			}
			continue
		}
		if !dry {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
		}
		done.Images++
	}
	return needed, nil
}

// pruneRefs removes the references to images that are gone.
func (s *Store) pruneRefs() error {
	entries, err := os.ReadDir(filepath.Join(s.dir, "refs"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(s.dir, "refs", e.Name())
		var rec refRecord
		ok, err := readJSON(path, &rec)
		if err != nil {
			return err
		}
		if ok && s.hasImage(rec.ID) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (s *Store) hasImage(id string) bool {
	for _, f := range []format{formatTrusted, formatUser} {
		if _, err := os.Stat(s.imageFileIn(id, f)); err == nil {
			return true
		}
	}
	return false
}

// pruneLayer removes a layer unless somebody claims it.
func (s *Store) pruneLayer(key string, dry bool, done *Pruned) (err error) {
	lock := s.layerLock(key)
	defer func() { err = errors.Join(err, release(lock)) }()
	if ok, err := tryLock(lock); err != nil || !ok {
		return err
	}
	var info layerInfo
	if _, err := readJSON(filepath.Join(s.layerDir(key), "layer.json"), &info); err != nil {
		return err
	}
	if dry {
		done.Layers++
		done.Bytes += info.Notes.Bytes
		return nil
	}
	// Renamed first, so that a layer is never there in part.
	trash, err := s.session.mkdir("prune-*")
	if err != nil {
		return err
	}
	if err := os.Rename(s.layerDir(key), filepath.Join(trash, "layer")); err != nil {
		return errors.Join(err, os.Remove(trash))
	}
	if err := removeTree(trash); err != nil {
		return err
	}
	done.Layers++
	done.Bytes += info.Notes.Bytes
	return nil
}
