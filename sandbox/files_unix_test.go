//go:build unix

package sandbox_test

import (
	"errors"
	"os"
	"testing"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestDownloadBytes: what a sandbox has in the place of a file is no file of this
// machine, and not more than was asked for.
func TestDownloadBytes(t *testing.T) {
	t.Parallel()
	b := fake.New(fake.Config{Dir: t.TempDir(), Files: map[string]string{"/a/file": "text", "/a/empty": ""}})
	defer fake.Verify(t, b)
	sb, err := b.Create(t.Context(), sandbox.Spec{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Destroy(t.Context()) }()
	if err := os.Symlink("/etc/passwd", b.Sandboxes()[0].Path("/a/link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		"/a/file": nil, "/a/empty": nil, "/a/link": bounded.ErrNotRegular, "/a/none": sandbox.ErrNotExist,
	} {
		if data, err := sandbox.DownloadBytes(t.Context(), sb, path, 4); !errors.Is(err, want) || err == nil && len(data) > 0 != (path == "/a/file") {
			t.Errorf("%s: %q, %v, want %v", path, data, err, want)
		}
	}
	if _, err := sandbox.DownloadBytes(t.Context(), sb, "/a/file", 3); !errors.Is(err, bounded.ErrTooLarge) {
		t.Errorf("a file that is too long: %v", err)
	}
}
