package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/gofrs/flock"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/layerfs"
)

// Sharing says who may use a cache at once (Dockerfile reference, "RUN
// --mount=type=cache", option sharing).
type Sharing string

// The kinds of sharing; empty means shared.
const (
	SharedCache  Sharing = "shared"  // several at once
	lockedCache  Sharing = "locked"  // one, others wait
	privateCache Sharing = "private" // one, others get a cache of their own
)

// cacheFile notes what a cache is, beside its directory.
const cacheFile = "cache.json"

type cacheRecord struct {
	ID    string `json:"id"`
	Bytes int64  `json:"bytes"` // at the end of its last use
}

// Cache is a directory that builds share.
type Cache struct {
	Dir string // absolute
	// Fresh: it was made just now, and is empty.
	Fresh bool

	disk *disk
	key  string
	id   string
	lock *flock.Flock
}

// OpenCache returns the directory that is kept under an id, making it when
// there is none. Until it is closed no process removes it.
func (s *Store) OpenCache(ctx context.Context, id string, sharing Sharing) (*Cache, error) {
	return s.upkeep.caches.open(ctx, id, sharing)
}

// caches are those of a store.
type caches struct{ disk *disk }

func (c *caches) open(ctx context.Context, id string, sharing Sharing) (*Cache, error) {
	base := fileKey(blob.DigestOf([]byte(string(c.disk.format) + " " + id)))
	for n := 0; ; n++ {
		key := base
		if sharing == privateCache {
			key += "-" + strconv.Itoa(n)
		}
		opened, err := c.openOne(ctx, key, id, sharing)
		if err != nil {
			return nil, fmt.Errorf("opening cache %q: %w", id, err)
		}
		if opened != nil {
			return opened, nil
		}
	}
}

// openOne returns nil when a private cache is another one's.
func (c *caches) openOne(ctx context.Context, key, id string, sharing Sharing) (*Cache, error) {
	lock := c.disk.cacheLock(key)
	take := lock.TryLock
	if sharing == SharedCache || sharing == "" {
		take = lock.TryRLock
	}
	for {
		ok, err := take()
		if err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		if ok {
			break
		}
		if sharing == privateCache {
			return nil, release(lock)
		}
		if err := clock.Sleep(ctx, lockPoll); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
	}
	opened := &Cache{Dir: filepath.Join(c.disk.cacheDir(key), "data"), disk: c.disk, key: key, id: id, lock: lock}
	if err := os.MkdirAll(c.disk.cacheDir(key), 0o700); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	err := os.Mkdir(opened.Dir, 0o700)
	opened.Fresh = err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, errors.Join(err, lock.Close())
	}
	return opened, nil
}

// Close notes how large the cache is, and lets others have it.
func (c *Cache) Close() error {
	err := c.disk.writeJSON(filepath.Join(c.disk.cacheDir(c.key), cacheFile), cacheRecord{ID: c.id, Bytes: treeSize(c.Dir)})
	return errors.Join(err, c.lock.Close())
}

// treeSize adds up the files below a directory, as far as they can be seen.
func treeSize(dir string) int64 {
	total := int64(0)
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // what cannot be seen is not counted
		}
		if info, err := d.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total
}

// storedCache is a cache as pruning sees it.
type storedCache struct {
	key   string
	bytes int64
	used  time.Time
}

// list returns the caches, the one that was used last first.
func (c *caches) list() ([]storedCache, error) {
	entries, err := os.ReadDir(filepath.Join(c.disk.dir, "caches"))
	if err != nil {
		return nil, fmt.Errorf("reading the image store: %w", err)
	}
	var all []storedCache
	for _, e := range entries {
		one := storedCache{key: e.Name()}
		var rec cacheRecord
		at := filepath.Join(c.disk.cacheDir(one.key), cacheFile)
		if _, err := readJSON(at, &rec); err != nil {
			return nil, err
		}
		one.bytes = rec.Bytes
		info, err := os.Stat(at)
		if errors.Is(err, fs.ErrNotExist) {
			info, err = e.Info() // in its first use, or that was killed
		}
		if err != nil {
			continue // removed meanwhile
		}
		one.used = info.ModTime()
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b storedCache) int { return b.used.Compare(a.used) })
	return all, nil
}

// discard removes a cache unless somebody uses it.
func (c *caches) discard(one storedCache) (gone bool, err error) {
	lock := c.disk.cacheLock(one.key)
	defer func() { err = errors.Join(err, lock.Close()) }()
	if ok, err := tryLock(lock); err != nil || !ok {
		return false, err
	}
	// Renamed first, so that a cache is never there in part.
	trash, err := c.disk.session.mkdir("prune-*")
	if err != nil {
		return false, fmt.Errorf("removing a cache: %w", err)
	}
	if err := os.Rename(c.disk.cacheDir(one.key), filepath.Join(trash, "cache")); err != nil {
		return false, fmt.Errorf("removing a cache: %w", errors.Join(err, os.Remove(trash)))
	}
	if err := layerfs.RemoveTree(trash); err != nil {
		return false, fmt.Errorf("removing a cache: %w", err)
	}
	return true, nil
}

// shrink removes the caches that were used before a time, the oldest
// first, until what is left of total is within limit. It returns that.
func (c *caches) shrink(ctx context.Context, all []storedCache, before time.Time, total, limit int64, dry bool, done *Pruned) (int64, []storedCache, error) {
	for len(all) > 0 && total > limit {
		one := all[len(all)-1]
		if ctx.Err() != nil {
			return total, all, context.Cause(ctx)
		}
		if !one.used.Before(before) {
			break
		}
		all = all[:len(all)-1]
		gone, err := true, error(nil)
		if !dry {
			gone, err = c.discard(one)
		}
		if err != nil {
			return total, all, err
		}
		if gone {
			done.Caches++
			done.Bytes += one.bytes
			total -= one.bytes
		}
	}
	return total, all, nil
}
