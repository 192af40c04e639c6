package layerfs

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/imagetest"
)

func TestUnpackTimesOwnersXattrs(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_500_000_000, 123_000_000)
	records := map[string]string{
		paxXattr + "user.mine":              "kept",
		paxXattr + "user.overlay.opaque":    "y",
		paxXattr + "trusted.overlay.opaque": "y",
		paxXattr + "security.selinux":       "x",
	}
	owned := func(h tar.Header) entry {
		h.Uid, h.Gid, h.ModTime, h.Format = 1234, 2345, at, tar.FormatPAX
		return entry{Header: h}
	}
	root, info, err := unpackIn(t, layerTar(t,
		owned(tar.Header{Typeflag: tar.TypeDir, Name: "d", Mode: 0o755, PAXRecords: records}),
		owned(tar.Header{Typeflag: tar.TypeReg, Name: "d/f", Mode: 0o4755, PAXRecords: maps.Clone(records)}),
		owned(tar.Header{Typeflag: tar.TypeSymlink, Name: "d/l", Linkname: "f"}),
	), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d", "d/f", "d/l"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(root, name), &st); err != nil {
			t.Fatal(err)
		}
		if got := timeOf(st.Mtim); !got.Equal(at) {
			t.Errorf("time of %s is %v, want %v", name, got, at)
		}
		if os.Geteuid() == 0 && testFormat(t) == Trusted && (st.Uid != 1234 || st.Gid != 2345) {
			t.Errorf("owner of %s is %d:%d, want 1234:2345", name, st.Uid, st.Gid)
		}
	}
	if got := imagetest.Describe(t, filepath.Join(root, "d/f")); got != "file 4755 " {
		t.Errorf("file is %q: its setuid bit must survive the change of owner", got)
	}
	if IsOpaque(filepath.Join(root, "d")) {
		t.Error("a layer could make a directory opaque by an attribute")
	}
	if os.Geteuid() != 0 && info.Notes.ForeignOwners != 3 {
		t.Errorf("%d foreign owners noted, want 3", info.Notes.ForeignOwners)
	}
	value := make([]byte, 16)
	n, err := unix.Lgetxattr(filepath.Join(root, "d/f"), "user.mine", value)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		t.Skip("the file system here has no user attributes")
	}
	if err != nil || string(value[:n]) != "kept" {
		t.Errorf("user.mine is %q (%v), want kept", value[:n], err)
	}
	if info.Notes.Xattrs != 6 {
		t.Errorf("%d attributes left out, want 6", info.Notes.Xattrs)
	}
}

func TestUnpackCapability(t *testing.T) {
	t.Parallel()
	need.Root(t)
	need.That(t, "trusted-xattrs", testFormat(t) == Trusted, "needs the right to set trusted attributes")
	// VFS_CAP_REVISION_2, cap_net_raw permitted and effective.
	capability := "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	root, _, err := unpackIn(t, layerTar(t, entry{Header: tar.Header{
		Typeflag: tar.TypeReg, Name: "ping", Mode: 0o755, Format: tar.FormatPAX,
		PAXRecords: map[string]string{paxXattr + "security.capability": capability},
	}, Content: "x"}), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	value := make([]byte, 64)
	n, err := unix.Lgetxattr(filepath.Join(root, "ping"), "security.capability", value)
	if err != nil || string(value[:n]) != capability {
		t.Errorf("capability is %q (%v), want %q", value[:n], err, capability)
	}
}

func TestUnpackSparse(t *testing.T) {
	t.Parallel()
	// A PAX sparse file, version 0.1: 1 MiB with "data" at 512 KiB.
	const size, at = 1 << 20, 512 << 10
	records := map[string]string{
		"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "sparse",
		"GNU.sparse.size": fmt.Sprint(size), "GNU.sparse.numblocks": "1", "GNU.sparse.map": fmt.Sprintf("%d,4", at),
	}
	raw := sparseTar(t, records, "data")
	root, info, err := unpackIn(t, raw, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, size)
	copy(want[at:], "data")
	if !bytes.Equal(got, want) {
		t.Errorf("content of %d bytes differs from the %d expected", len(got), len(want))
	}
	if info.Notes.Bytes != size {
		t.Errorf("%d bytes noted, want %d: holes count", info.Notes.Bytes, size)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(root, "sparse"), &st); err != nil {
		t.Fatal(err)
	}
	if st.Blocks*512 >= size {
		t.Errorf("%d bytes on disk, expected holes", st.Blocks*512)
	}

	records["GNU.sparse.size"] = fmt.Sprint(int64(1) << 60)
	if _, _, err := unpackIn(t, sparseTar(t, records, "data"), Limits{}); !errors.Is(err, blob.ErrLimit) {
		t.Errorf("a file of an exabyte of holes: got %v, want %v", err, blob.ErrLimit)
	}
}

// sparseTar writes what archive/tar refuses to write: PAX records of a sparse
// file, by hand.
func sparseTar(t testing.TB, records map[string]string, content string) []byte {
	t.Helper()
	var pax strings.Builder
	for _, key := range slices.Sorted(maps.Keys(records)) {
		body := fmt.Sprintf(" %s=%s\n", key, records[key])
		n := len(body) + 1
		for len(fmt.Sprint(n))+len(body) != n {
			n++
		}
		fmt.Fprintf(&pax, "%d%s", n, body)
	}
	header := layerTar(t, entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: "pax", Mode: 0o644}, Content: pax.String()})
	header = header[:len(header)-1024]
	header[156] = 'x'
	checksum(header[:512])
	return append(header, layerTar(t, file("GNUSparseFile.0/sparse", content))...)
}

func checksum(header []byte) {
	copy(header[148:156], "        ")
	sum := 0
	for _, b := range header[:512] {
		sum += int(b)
	}
	copy(header[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

func TestUnpackCancelled(t *testing.T) {
	t.Parallel()
	raw := layerTar(t, file("a", "x"))
	ctx, cancel := context.WithCancelCause(t.Context())
	errTest := errors.New("the test says so")
	cancel(errTest)
	if _, err := Unpack(ctx, t.TempDir(), bytes.NewReader(raw), testFormat(t), orDefaults(Limits{})); !errors.Is(err, errTest) {
		t.Errorf("got %v, want the cause of the cancellation", err)
	}
}

func TestUnpackTruncated(t *testing.T) {
	t.Parallel()
	raw := layerTar(t, file("a", strings.Repeat("x", 4096)))
	for _, n := range []int{1, 511, 600, 3000} {
		if _, _, err := unpackIn(t, raw[:n], Limits{}); !errors.Is(err, blob.ErrMalformed) {
			t.Errorf("cut after %d bytes: got %v, want %v", n, err, blob.ErrMalformed)
		}
	}
}
