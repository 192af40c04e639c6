package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/layerfs"
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
	return s.upkeep.prune(ctx, func(id string) bool { return kept[id] }, false)
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
	return s.upkeep.pruneUnused(ctx, u)
}

func (u *upkeep) pruneUnused(ctx context.Context, unused Unused) (Pruned, error) {
	entries, err := os.ReadDir(filepath.Join(u.disk.dir, "refs"))
	if err != nil {
		return Pruned{}, fmt.Errorf("pruning images: %w", err)
	}
	wanted, dropped := map[string]bool{}, map[string]bool{}
	var old []string
	for _, e := range entries {
		path := filepath.Join(u.disk.dir, "refs", e.Name())
		var rec refRecord
		ok, err := readJSON(path, &rec)
		if err != nil {
			return Pruned{}, fmt.Errorf("pruning images: %w", err)
		}
		info, err := e.Info()
		if err != nil || !ok {
			continue // removed meanwhile, or damaged
		}
		if strings.HasPrefix(rec.Ref, unused.Prefix) && info.ModTime().Before(unused.Since) {
			dropped[rec.ID] = true
			old = append(old, path)
			continue
		}
		wanted[rec.ID] = true
	}
	for _, path := range old {
		if unused.Dry {
			break
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return Pruned{}, fmt.Errorf("pruning images: %w", err)
		}
	}
	if len(old) == 0 {
		return Pruned{}, nil
	}
	return u.prune(ctx, func(id string) bool { return wanted[id] || !dropped[id] }, unused.Dry)
}

// prune removes the images that keep does not want.
func (u *upkeep) prune(ctx context.Context, keep func(id string) bool, dry bool) (Pruned, error) {
	var done Pruned
	needed, err := u.pruneImages(func(id string) bool { return u.held(id) || keep(id) }, dry, &done)
	if err != nil {
		return done, fmt.Errorf("pruning images: %w", err)
	}
	if !dry {
		if err := u.pruneRefs(); err != nil {
			return done, fmt.Errorf("pruning references: %w", err)
		}
	}
	entries, err := os.ReadDir(u.disk.layersDir())
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
		if err := u.pruneLayer(e.Name(), dry, &done); err != nil {
			return done, fmt.Errorf("pruning layer %s: %w", e.Name(), err)
		}
	}
	return done, nil
}

// pruneImages removes images and returns the keys of the layers that the
// others have.
func (u *upkeep) pruneImages(keep func(id string) bool, dry bool, done *Pruned) (needed map[string]bool, err error) {
	entries, err := os.ReadDir(filepath.Join(u.disk.dir, "images"))
	if err != nil {
		return nil, err
	}
	needed = map[string]bool{}
	suffix := "." + string(u.disk.format) + ".json"
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) {
			continue // of the other format, with layers of its own
		}
		path := filepath.Join(u.disk.dir, "images", e.Name())
		var rec record
		ok, err := readJSON(path, &rec)
		if err != nil {
			return nil, err
		}
		if ok && keep(blob.DigestOf(rec.Config)) {
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
func (u *upkeep) pruneRefs() error {
	entries, err := os.ReadDir(filepath.Join(u.disk.dir, "refs"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(u.disk.dir, "refs", e.Name())
		var rec refRecord
		ok, err := readJSON(path, &rec)
		if err != nil {
			return err
		}
		if ok && u.hasImage(rec.ID) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (u *upkeep) hasImage(id string) bool {
	for _, f := range []layerfs.Format{layerfs.Trusted, layerfs.User} {
		if _, err := os.Stat(u.disk.imageFileIn(id, f)); err == nil {
			return true
		}
	}
	return false
}

// pruneLayer removes a layer unless somebody claims it.
func (u *upkeep) pruneLayer(key string, dry bool, done *Pruned) (err error) {
	lock := u.disk.layerLock(key)
	defer func() { err = errors.Join(err, release(lock)) }()
	if ok, err := tryLock(lock); err != nil || !ok {
		return err
	}
	var info layerInfo
	if _, err := readJSON(filepath.Join(u.disk.layerDir(key), layerFile), &info); err != nil {
		return err
	}
	if dry {
		done.Layers++
		done.Bytes += info.Notes.Bytes
		return nil
	}
	// Renamed first, so that a layer is never there in part.
	trash, err := u.disk.session.mkdir("prune-*")
	if err != nil {
		return err
	}
	if err := os.Rename(u.disk.layerDir(key), filepath.Join(trash, "layer")); err != nil {
		return errors.Join(err, os.Remove(trash))
	}
	if err := layerfs.RemoveTree(trash); err != nil {
		return err
	}
	done.Layers++
	done.Bytes += info.Notes.Bytes
	return nil
}
