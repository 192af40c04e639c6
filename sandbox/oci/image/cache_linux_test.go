package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func openTestCache(t *testing.T, s *Store, id string, sharing Sharing) *Cache {
	t.Helper()
	c, err := s.OpenCache(t.Context(), id, sharing)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func closeCache(t *testing.T, c *Cache) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestCacheSharing: what is kept under an id is there again, for several at
// once, one after the other, or not together.
func TestCacheSharing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := openStore(t, dir, Options{Offline: true}), openStore(t, dir, Options{Offline: true})
	one := openTestCache(t, a, "go", SharedCache)
	if !one.Fresh {
		t.Error("a new cache is not fresh")
	}
	if err := os.WriteFile(filepath.Join(one.Dir, "x"), []byte("12345"), 0o644); err != nil {
		t.Fatal(err)
	}
	two := openTestCache(t, b, "go", SharedCache)
	if two.Dir != one.Dir || two.Fresh {
		t.Errorf("shared: %+v, want the same again", two)
	}
	closeCache(t, two)
	short, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
	defer cancel()
	if _, err := b.OpenCache(short, "go", lockedCache); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("locked while another one has it: %v, want that it waits", err)
	}
	closeCache(t, one)
	closeCache(t, openTestCache(t, b, "go", lockedCache))
	first := openTestCache(t, a, "go", privateCache)
	second := openTestCache(t, b, "go", privateCache)
	if first.Dir == second.Dir {
		t.Error("private: both have one directory")
	}
	closeCache(t, second)
	closeCache(t, first)
	if again := openTestCache(t, b, "go", privateCache); again.Dir != first.Dir || again.Fresh {
		t.Errorf("private, when it is free: %+v, want the first again", again)
	} else {
		closeCache(t, again)
	}
}

// TestCachePruned: caches count, and go when they are old and nobody has them.
func TestCachePruned(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir(), Options{Offline: true})
	var caches []*Cache
	for _, id := range []string{"old", "new"} {
		c := openTestCache(t, s, id, "")
		if err := os.WriteFile(filepath.Join(c.Dir, "x"), make([]byte, 1000), 0o644); err != nil {
			t.Fatal(err)
		}
		closeCache(t, c)
		caches = append(caches, c)
	}
	hourAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(filepath.Dir(caches[0].Dir), cacheFile), hourAgo, hourAgo); err != nil {
		t.Fatal(err)
	}
	there := func() (n int) {
		for _, c := range caches {
			if _, err := os.Stat(c.Dir); err == nil {
				n++
			}
		}
		return n
	}
	if done, err := s.Shrink(t.Context(), 1500, true); err != nil || done.Bytes != 1000 || there() != 2 {
		t.Errorf("dry: %+v (%v), %d left, want to remove one and leave both", done, err, there())
	}
	held := openTestCache(t, s, "new", "")
	if done, err := s.Shrink(t.Context(), 0, false); err != nil || done.Caches != 1 || there() != 1 {
		t.Errorf("%+v (%v), %d left, want the one in use alone", done, err, there())
	}
	closeCache(t, held)
	if done, err := s.RemoveUnused(t.Context(), hourAgo, false); err != nil || done.Caches != 0 {
		t.Errorf("unused for an hour: %+v (%v), want none", done, err)
	}
	if done, err := s.RemoveUnused(t.Context(), time.Now().Add(time.Minute), false); err != nil || done.Caches != 1 || there() != 0 {
		t.Errorf("unused: %+v (%v), %d left, want the last one gone", done, err, there())
	}
}
