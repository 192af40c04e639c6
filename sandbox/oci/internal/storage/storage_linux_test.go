package storage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func write(t *testing.T, path string, bytes int) {
	t.Helper()
	if err := os.WriteFile(path, make([]byte, bytes), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMeasure: what lies on disk counts, once, a small file as perFile.
func TestMeasure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		bytes, leeway int64 // a file system may need more for what it notes of files
		entries       int64
		make          func(t *testing.T, dir string)
	}{
		{"nothing", 0, 0, 0, func(*testing.T, string) {}},
		{"a file", 1 << 20, perFile, 1, func(t *testing.T, dir string) { write(t, dir+"/a", 1<<20) }},
		{"small files", 3 * perFile, 0, 3, func(t *testing.T, dir string) {
			write(t, dir+"/a", 0)
			write(t, dir+"/b", 1)
			if err := unix.Mkfifo(dir+"/c", 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"a file with holes", perFile, perFile, 1, func(t *testing.T, dir string) {
			write(t, dir+"/a", 1)
			if err := os.Truncate(dir+"/a", 1<<30); err != nil {
				t.Fatal(err)
			}
		}},
		{"one with two names", 1 << 20, perFile, 2, func(t *testing.T, dir string) {
			write(t, dir+"/a", 1<<20)
			if err := os.Link(dir+"/a", dir+"/b"); err != nil {
				t.Fatal(err)
			}
		}},
		{"a link to what is elsewhere", perFile, 0, 1, func(t *testing.T, dir string) {
			elsewhere := t.TempDir()
			write(t, elsewhere+"/a", 1<<20)
			if err := os.Symlink(elsewhere, dir+"/a"); err != nil {
				t.Fatal(err)
			}
		}},
		{"files below directories", 2<<20 + 4*perFile, 2 * perFile, 6, func(t *testing.T, dir string) {
			for _, below := range []string{"x/y", "z/y"} {
				if err := os.MkdirAll(filepath.Join(dir, below), 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, below, "a"), 1<<20)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.make(t, dir)
			w := Watch{Dirs: []string{dir}}
			got := w.measure(t.Context())
			if got.bytes < c.bytes || got.bytes > c.bytes+c.leeway || got.entries != c.entries {
				t.Errorf("got %+v, want %d bytes in %d entries", got, c.bytes, c.entries)
			}
		})
	}
}

// TestMeasureDeep: no path is too long.
func TestMeasureDeep(t *testing.T) {
	t.Parallel()
	const depth = 500
	name := strings.Repeat("d", 200)
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	for n := 0; n < depth && err == nil; n++ {
		if err = unix.Mkdirat(fd, name, 0o700); err == nil {
			var next int
			next, err = unix.Openat(fd, name, unix.O_PATH|unix.O_CLOEXEC, 0)
			_ = unix.Close(fd)
			fd = next
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	w := Watch{Dirs: []string{dir}}
	if got := w.measure(t.Context()); got.entries != depth {
		t.Errorf("got %d entries, want %d", got.entries, depth)
	}
}

// TestFound: too much is said once, then when there is Leeway more, and again when there
// was no more than the limit.
func TestFound(t *testing.T) {
	t.Parallel()
	w := Watch{Limit: 100, limit: 100}
	for _, c := range []struct {
		bytes    int64
		exceeded bool
	}{{100, false}, {101, true}, {101, false}, {101 + Leeway, false}, {102 + Leeway, true}, {50, false}, {101, true}} {
		if got := w.found(nil, usage{bytes: c.bytes}); got != c.exceeded {
			t.Errorf("%d bytes: exceeded is %t", c.bytes, got)
		}
	}
}

// TestKept: what lies elsewhere counts from the beginning.
func TestKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/a", 1<<20)
	for kept, exceeded := range map[int64]bool{0: false, 1 << 20: true} {
		w := &Watch{Dirs: []string{dir}, Kept: kept, Limit: 3 << 19, limit: 3 << 19}
		if got := w.found(nil, w.measure(t.Context())); got != exceeded {
			t.Errorf("%d bytes are kept: exceeded is %t, want %t", kept, got, exceeded)
		}
	}
	w := &Watch{Dirs: []string{dir}, Kept: 2 << 20, Limit: 3 << 19}
	if !w.suspicious() {
		t.Error("more than the limit is kept, and that is not suspicious")
	}
}

// TestBegin: who begins when there is too much is not to blame for it.
func TestBegin(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	exceeded := make(chan int64, 1)
	w := &Watch{Dirs: []string{dir}, Limit: 1 << 20, Exceeded: func(_ context.Context, bytes int64) { exceeded <- bytes }}
	w.Begin(ctx)()
	write(t, dir+"/a", 4<<20)
	end := w.Begin(ctx)
	defer end()
	ended := make(chan struct{})
	go func() {
		w.Run(ctx)
		close(ended)
	}()
	select {
	case bytes := <-exceeded:
		t.Errorf("%d bytes that were there before were too much", bytes)
	case <-time.After(4 * look):
	}
	write(t, dir+"/b", 2*Leeway)
	if bytes := <-exceeded; bytes <= Leeway {
		t.Errorf("got %d bytes", bytes)
	}
	cancel()
	<-ended
}

// TestMovedWhileMeasured: what is moved or removed does not keep the rest from being counted.
func TestMovedWhileMeasured(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(dir string) error
		ups    int
		at     string // where the walk goes on then
	}{
		"moved":           {func(dir string) error { return os.Rename(dir+"/a/b/c", dir+"/z/c") }, 1, "a/b"},
		"removed":         {func(dir string) error { return os.Remove(dir + "/a/b/c") }, 1, "a/b"},
		"moved with more": {func(dir string) error { return os.Rename(dir+"/a/b", dir+"/z/b") }, 2, "a"},
		"replaced": {func(dir string) error {
			return errors.Join(os.Rename(dir+"/a", dir+"/z/a"), os.MkdirAll(dir+"/a/b/c", 0o700))
		}, 3, "."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := errors.Join(os.MkdirAll(dir+"/a/b/c", 0o700), os.Mkdir(dir+"/z", 0o700)); err != nil {
				t.Fatal(err)
			}
			root, err := os.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = root.Close() }()
			var u usage
			top, err := u.enter(root, "")
			w := walk{root: root, dir: root, stack: []*place{top}}
			for _, name := range []string{"a", "b", "c"} {
				if err != nil {
					t.Fatal(err)
				}
				var next *os.File
				if next, err = openDir(w.dir, name); err == nil {
					w.to(next)
					top, err = u.enter(next, name)
					w.stack = append(w.stack, top)
				}
			}
			if err := errors.Join(err, c.change(dir)); err != nil {
				t.Fatal(err)
			}
			for range c.ups {
				w.up()
			}
			want, err := os.Stat(filepath.Join(dir, c.at))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := w.dir.Stat(); err != nil || !os.SameFile(got, want) || !w.stack[len(w.stack)-1].is(w.dir) {
				t.Errorf("it goes on at %v, %v, want %s", got, err, c.at)
			}
			w.to(root)
		})
	}
}
