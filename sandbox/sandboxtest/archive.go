package sandboxtest

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// entry of a tar stream, as far as the contract promises it.
type entry struct {
	mode     int64
	body     string // content, or the target of a symlink
	typ      byte
	uid, gid int
}

func (e entry) String() string {
	body := e.body
	if len(body) > 40 {
		body = body[:40] + "…"
	}
	return fmt.Sprintf("{type %c, mode %o, owner %d:%d, %q (%d bytes)}", e.typ, e.mode, e.uid, e.gid, body, len(e.body))
}

// pack writes entries, sorted by name, as a tar stream.
func pack(t testing.TB, entries map[string]entry) []byte {
	t.Helper()
	return packInOrder(t, entries, slices.Sorted(maps.Keys(entries))...)
}

func packInOrder(t testing.TB, entries map[string]entry, names ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, name := range names {
		e := entries[name]
		h := &tar.Header{Name: name, Mode: e.mode, Typeflag: e.typ, Uid: e.uid, Gid: e.gid}
		switch e.typ {
		case tar.TypeReg:
			h.Size = int64(len(e.body))
		case tar.TypeSymlink, tar.TypeLink:
			h.Linkname = e.body
		case tar.TypeDir:
			h.Name += "/"
		}
		err := tw.WriteHeader(h)
		if err == nil && e.typ == tar.TypeReg {
			_, err = io.WriteString(tw, e.body)
		}
		if err != nil {
			t.Fatalf("writing tar entry %q: %v", name, err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatalf("writing tar: %v", err)
	}
	return buf.Bytes()
}

// unpack reads a tar stream; names lose a leading "./" and a closing slash,
// and the directory itself is left out.
func unpack(t testing.TB, stream []byte) map[string]entry {
	t.Helper()
	entries := map[string]entry{}
	tr := tar.NewReader(bytes.NewReader(stream))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatalf("reading the downloaded tar: %v", err)
		}
		name := path.Clean(strings.TrimPrefix(h.Name, "./"))
		if name == "." {
			continue
		}
		body, err := io.ReadAll(tr)
		if err != nil {
			t.Fatalf("reading tar entry %q: %v", h.Name, err)
		}
		e := entry{mode: h.Mode & 0o7777, typ: h.Typeflag, body: string(body), uid: h.Uid, gid: h.Gid}
		if h.Typeflag == tar.TypeSymlink {
			e.body, e.mode = h.Linkname, 0o777
		}
		entries[name] = e
	}
}

func upload(t testing.TB, sb sandbox.Sandbox, dir string, stream []byte) {
	t.Helper()
	if err := sb.Upload(call(t), dir, bytes.NewReader(stream)); err != nil {
		t.Fatalf("uploading to %s: %v", dir, err)
	}
}

func download(t testing.TB, sb sandbox.Sandbox, p string) map[string]entry {
	t.Helper()
	var buf bytes.Buffer
	if err := sb.Download(call(t), p, &buf); err != nil {
		t.Fatalf("downloading %s: %v", p, err)
	}
	return unpack(t, buf.Bytes())
}

// same compares trees; owners only where the backend can keep them.
func same(t *testing.T, s *suite, got, want map[string]entry) {
	t.Helper()
	for name, w := range want {
		g, ok := got[name]
		if s.cfg.OneUser {
			g.uid, g.gid, w.uid, w.gid = 0, 0, 0, 0
		}
		switch {
		case !ok:
			t.Errorf("%s is missing", name)
		case g != w:
			t.Errorf("%s: got %v, want %v", name, g, w)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: got %v, want no such entry", name, got[name])
		}
	}
}

// file and dirEntry are what most trees are made of.
func file(mode int64, body string) entry { return entry{mode: mode, typ: tar.TypeReg, body: body} }
func dirEntry(mode int64) entry          { return entry{mode: mode, typ: tar.TypeDir} }
func link(target string) entry           { return entry{mode: 0o777, typ: tar.TypeSymlink, body: target} }
