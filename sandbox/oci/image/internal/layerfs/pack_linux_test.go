package layerfs

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/imagetest"
)

// TestPackUnpack: packing what was unpacked and unpacking that gives the same
// tree, and packing it again the same bytes.
func TestPackUnpack(t *testing.T) {
	t.Parallel()
	f := testFormat(t)
	entries := []entry{
		dir("a", 0o700), file("a/f", "content"), hardlink("a/g", "a/f"), symlink("a/s", "../../x"), whiteout("a/.wh.w"),
		dir("o", 0o755), whiteout("o/.wh..wh..opq"), file("o/n", strings.Repeat("x", 100_000)), dir("closed", 0), file("closed/f", "x"),
	}
	closed := file("unreadable", "x")
	closed.Mode = 0
	closed.ModTime = time.Unix(1_400_000_000, 123_456_789)
	closed.Format = tar.FormatPAX // for the fraction
	first, _, err := unpackIn(t, layerTar(t, append(entries, closed)...), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var once, twice bytes.Buffer
	if _, err := Pack(t.Context(), &once, first, f); err != nil {
		t.Fatal(err)
	}
	second, _, err := unpackIn(t, once.Bytes(), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Pack(t.Context(), &twice, second, f); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(once.Bytes(), twice.Bytes()) {
		t.Error("packing the unpacked gives other bytes")
	}
	openAll(t, first)
	openAll(t, second)
	if diff := cmp.Diff(imagetest.Listing(t, first), imagetest.Listing(t, second)); diff != "" {
		t.Errorf("trees (-first +second):\n%s", diff)
	}
}

// openAll makes what is closed to its owner readable, for listing as an
// ordinary user.
func openAll(t *testing.T, root string) {
	t.Helper()
	for _, name := range []string{"closed", "unreadable"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(root, name), &st); err != nil || st.Mode&0o7777 != 0 {
			t.Fatalf("mode of %s is %o (%v), want 0: packing must restore it", name, st.Mode&0o7777, err)
		}
		if err := os.Chmod(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPackDropsDevicesAndSockets(t *testing.T) {
	t.Parallel()
	upper := t.TempDir()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	// A short name, because those of sockets are.
	dirFD, err := os.Open(upper)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dirFD.Close() }()
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/s", dirFD.Fd())}); err != nil {
		t.Skipf("needs sockets in the file system: %v", err)
	}
	var buf bytes.Buffer
	notes, err := Pack(t.Context(), &buf, upper, testFormat(t))
	if err != nil || notes.Devices != 1 {
		t.Errorf("notes are %+v (%v), want one left out", notes, err)
	}
	if len(imagetest.Listing(t, upper)) != 0 {
		t.Error("the socket is still there")
	}
}
