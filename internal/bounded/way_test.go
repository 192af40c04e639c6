package bounded

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// countedWay counts what is opened, and what is open at a time.
func countedWay(t *testing.T) (w *Way, opened, most *int) {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, opened, most = NewWay(root), new(int), new(int)
	t.Cleanup(func() {
		w.Close()
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	w.open = func(r *os.Root, name string) (*os.Root, error) {
		if strings.Contains(name, "/") {
			t.Errorf("%q is opened by more than one name", name)
		}
		*opened++
		open := 1
		for _, s := range w.steps {
			if s.root != nil {
				open++
			}
		}
		*most = max(*most, open)
		return r.OpenRoot(name)
	}
	return w, opened, most
}

const manyLevels = 2000

// TestWayWorksByItsLength: what is opened grows with the depth, not with its square, and
// what is open at a time hardly grows.
func TestWayWorksByItsLength(t *testing.T) {
	t.Parallel()
	w, opened, most := countedWay(t)
	deep := strings.Repeat("d/", manyLevels-1) + "d"
	for depth := 1; depth <= manyLevels; depth++ { // as the entries of an archive come
		dir, err := w.To(deep[:2*depth-1], 0o755)
		if err != nil {
			t.Fatal(err)
		}
		if err := dir.WriteFile("f", nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if *opened != manyLevels {
		t.Errorf("%d directories were opened on the way down, want %d", *opened, manyLevels)
	}
	for range manyLevels {
		dir, err := w.Here()
		if err != nil {
			t.Fatal(err)
		}
		if err := dir.Remove("f"); err != nil {
			t.Fatal(err)
		}
		w.Leave()
	}
	if *opened > 2*manyLevels {
		t.Errorf("%d directories were opened on the way down and up again, want at most %d", *opened, 2*manyLevels)
	}
	if *most > 3*stride+manyLevels/stride {
		t.Errorf("%d directories were open at a time", *most)
	}
}

// TestWayGoesUpAndDown around the depths at which directories are closed.
func TestWayGoesUpAndDown(t *testing.T) {
	t.Parallel()
	w, opened, _ := countedWay(t)
	const depth = 4 * stride
	deep := strings.Repeat("d/", depth-2) + "d"
	const rounds = 50
	for _, names := range [][]string{{"x", "y"}, {"x/x/x", "."}} {
		for range rounds {
			for _, name := range names {
				if _, err := w.To(path.Join(deep, name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if most := depth + 2*rounds*4; *opened > most {
		t.Errorf("%d directories were opened, want at most %d", *opened, most)
	}
}

func TestWayFollowsNoLink(t *testing.T) {
	t.Parallel()
	w, _, _ := countedWay(t)
	dir, err := w.To("a/b", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Symlink("c", "l"); err != nil {
		t.Fatal(err)
	}
	if err := dir.Mkdir("c", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := w.To("a/b/l/d", 0o755); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("through a link: got %v", err)
	}
	if _, err := w.To("a/none", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is missing: got %v", err)
	}
	if _, err := w.To("../a", 0o755); err == nil {
		t.Error("it leads above where it begins")
	}
	if _, err := w.To(strings.Repeat("d/", maxPath/2)+"dd", 0o755); !errors.Is(err, ErrLongPath) || len(err.Error()) > 300 {
		t.Errorf("too deep: got %v", err)
	}
}

// TestWayNoticesAnotherDirectory that has taken the place of one that it has closed.
func TestWayNoticesAnotherDirectory(t *testing.T) {
	t.Parallel()
	w, _, _ := countedWay(t)
	top := w.steps[0].root.Name()
	deep := strings.Repeat("d/", 3*stride)
	if _, err := w.To(path.Clean(deep), 0o755); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(top, strings.Repeat("d/", stride+2))
	if err := os.Rename(at, filepath.Join(top, "moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	for len(w.steps)-1 > 2*stride-1 {
		w.Leave()
	}
	if _, err := w.Here(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
