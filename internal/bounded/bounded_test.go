package bounded_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/internal/bounded"
	"pgregory.net/rapid"
)

func TestFileKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		limit    int64
		want     string
		cut      int64
	}{
		{"short", "abc", 10, "abc", 0},
		{"exact", "abcdefghij", 10, "abcdefghij", 0},
		{"one over", "abcdefghijk", 10, "abcde" + bounded.CutMark(1) + "ghijk", 1},
		{"long", "abcdefghijklmnopqrstuvwxyz", 4, "ab" + bounded.CutMark(22) + "yz", 22},
		{"empty", "", 4, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, chunk := range []int{1, 3, 100} {
				got, cut := writeChunks(t, c.in, c.limit, chunk)
				if got != c.want || cut != c.cut {
					t.Errorf("chunks of %d: got %q, cut %d; want %q, cut %d", chunk, got, cut, c.want, c.cut)
				}
			}
		})
	}
}

func writeChunks(t *testing.T, in string, limit int64, chunk int) (string, int64) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "out.txt")
	f, err := bounded.Create(dir, "out.txt", limit)
	if err != nil {
		t.Fatal(err)
	}
	for rest := in; rest != ""; {
		n := min(chunk, len(rest))
		if w, err := f.Write([]byte(rest[:n])); w != n || err != nil {
			t.Fatalf("Write = %d, %v", w, err)
		}
		rest = rest[n:]
	}
	cut := f.Cut()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(got), cut
}

func TestTailProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 20).Draw(t, "limit")
		tail := bounded.NewTail(limit)
		var all []byte
		for _, p := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 30)).Draw(t, "writes") {
			_, _ = tail.Write(p)
			all = append(all, p...)
		}
		want := all[max(0, len(all)-limit):]
		if got := tail.Bytes(); !bytes.Equal(got, want) {
			t.Fatalf("kept %q, want %q", got, want)
		}
		if got := tail.Dropped(); got != int64(len(all)-len(want)) {
			t.Fatalf("dropped %d, want %d", got, len(all)-len(want))
		}
	})
}

func TestCreateFollowsNoPlantedLink(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "out.txt")); err != nil {
		t.Fatal(err)
	}
	f, err := bounded.Create(dir, "out.txt", 10)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Write([]byte("x"))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "precious" {
		t.Errorf("the link's target now holds %q, %v", got, err)
	}
}
