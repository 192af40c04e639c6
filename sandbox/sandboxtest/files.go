package sandboxtest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

var uploadObligations = []obligation{
	{"a tree comes back as it went in", 0, roundTrip},
	{"a missing directory is created with its parents", 0, func(t *testing.T, s *suite) {
		sb, dir := s.shared(t), path.Join(s.dir(), "a/b/c")
		upload(t, sb, dir, pack(t, map[string]entry{"f": file(0o644, "x")}))
		same(t, s, download(t, sb, dir), map[string]entry{"f": file(0o644, "x")})
	}},
	{"missing parents of an entry are created", 0, func(t *testing.T, s *suite) {
		sb, dir := s.shared(t), s.dir()
		upload(t, sb, dir, pack(t, map[string]entry{"a/b/f": file(0o600, "x")}))
		if got := download(t, sb, dir)["a/b/f"]; got != file(0o600, "x") && !s.cfg.OneUser {
			t.Errorf("a/b/f: got %v", got)
		}
	}},
	{"an empty stream creates the directory", 0, func(t *testing.T, s *suite) {
		sb, dir := s.shared(t), s.dir()
		upload(t, sb, dir, pack(t, nil))
		same(t, s, download(t, sb, dir), nil)
	}},
	{"what was there stays, what has the same name is replaced", 0, func(t *testing.T, s *suite) {
		sb, dir := s.shared(t), s.dir()
		upload(t, sb, dir, pack(t, map[string]entry{"keep": file(0o644, "k"), "f": file(0o600, "old and longer"), "l": link("keep")}))
		upload(t, sb, dir, pack(t, map[string]entry{"f": file(0o755, "new"), "l": file(0o644, "no link")}))
		same(t, s, download(t, sb, dir), map[string]entry{
			"keep": file(0o644, "k"), "f": file(0o755, "new"), "l": file(0o644, "no link"),
		})
	}},
	{"commands see what was uploaded", processes, func(t *testing.T, s *suite) {
		sb, dir := s.shared(t), s.dir()
		upload(t, sb, dir, pack(t, map[string]entry{"run": file(0o755, "#!/bin/bash\necho ran \"$1\"\n"), "d": dirEntry(0o755)}))
		if got := output(t, sb, sandbox.Command{Argv: []string{dir + "/run", "x"}}); got != "ran x" {
			t.Errorf("got %q", got)
		}
	}},
	{"owners are kept as numbers", otherUser | processes, func(t *testing.T, s *suite) {
		sb, dir := s.shared(t), s.dir()
		upload(t, sb, dir, pack(t, map[string]entry{"f": {mode: 0o4755, typ: tar.TypeReg, body: "x", uid: 12345, gid: 23456}}))
		if got, want := output(t, sb, sh("stat -c '%u:%g %a' "+dir+"/f")), "12345:23456 4755"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}},
	{"a link in the stream leads nowhere outside the sandbox", 0, hostileStream},
	{"a link in the sandbox leads nowhere outside the sandbox", processes | privateRoot, hostileTarget},
	{"a name that climbs stays inside the sandbox", privateRoot, func(t *testing.T, s *suite) {
		sb, dir := s.fresh(t), s.dir()
		name := strings.Repeat("../", 40) + "sandboxtest-climbed"
		stream := pack(t, map[string]entry{name: file(0o644, "x")})
		_ = sb.Upload(call(t), dir, bytes.NewReader(stream)) // an error is as good
		notOnHost(t, "/sandboxtest-climbed")
	}},
	{"a broken stream is an error", 0, func(t *testing.T, s *suite) {
		if err := s.shared(t).Upload(call(t), s.dir(), strings.NewReader(strings.Repeat("garbage", 1000))); err == nil {
			t.Error("garbage: got no error")
		}
		stream := pack(t, map[string]entry{"f": file(0o644, strings.Repeat("x", 10_000))})
		if err := s.shared(t).Upload(call(t), s.dir(), bytes.NewReader(stream[:4000])); err == nil {
			t.Error("a stream that ends in the middle of a file: got no error")
		}
	}},
	{"an error of the reader is returned", 0, func(t *testing.T, s *suite) {
		stream := pack(t, map[string]entry{"f": file(0o644, strings.Repeat("x", 10_000))})
		r := io.MultiReader(bytes.NewReader(stream[:4000]), brokenReader{})
		if err := s.shared(t).Upload(call(t), s.dir(), r); !errors.Is(err, errCause) {
			t.Errorf("got error %v, want the reader's own", err)
		}
		mark(t, s.shared(t)) // the sandbox still answers
	}},
	{"an ended context is returned as its cause", 0, func(t *testing.T, s *suite) {
		ctx, cancel := context.WithCancelCause(call(t))
		cancel(errCause)
		if err := s.shared(t).Upload(ctx, s.dir(), bytes.NewReader(pack(t, nil))); !errors.Is(err, errCause) {
			t.Errorf("got error %v, want the context's cause", err)
		}
	}},
	{"a large file arrives whole", 0, largeFile},
	{"many files arrive", 0, func(t *testing.T, s *suite) {
		tree := map[string]entry{}
		for i := range 2000 {
			tree[fmt.Sprintf("f%04d", i)] = file(0o644, fmt.Sprint(i))
		}
		sb, dir := s.shared(t), s.dir()
		upload(t, sb, dir, pack(t, tree))
		same(t, s, download(t, sb, dir), tree)
	}},
}

var downloadObligations = []obligation{
	{"a file is one entry with its base name", 0, func(t *testing.T, s *suite) {
		sb, dir := s.shared(t), s.dir()
		upload(t, sb, dir, pack(t, map[string]entry{"a/f": file(0o640, "x"), "a/g": file(0o640, "y")}))
		same(t, s, download(t, sb, dir+"/a/f"), map[string]entry{"f": file(0o640, "x")})
	}},
	{"a missing path is ErrNotExist before any output", 0, func(t *testing.T, s *suite) {
		sb, dir := s.shared(t), s.dir()
		upload(t, sb, dir, pack(t, map[string]entry{"f": file(0o644, "x")}))
		for _, p := range []string{dir + "/nothing", dir + "/no/thing", dir + "/f/thing"} {
			var c counter
			if err := sb.Download(call(t), p, &c); !errors.Is(err, sandbox.ErrNotExist) || c.n != 0 {
				t.Errorf("%s: got error %v and %d bytes, want ErrNotExist and none", p, err, c.n)
			}
		}
	}},
	{"links are written as links", 0, func(t *testing.T, s *suite) {
		sb, dir := s.shared(t), s.dir()
		tree := map[string]entry{"abs": link("/etc/passwd"), "up": link("../../x"), "dangling": link("nothing"), "dir": link("/etc")}
		upload(t, sb, dir, pack(t, tree))
		same(t, s, download(t, sb, dir), tree)
	}},
	{"a directory need not be readable to others", otherUser | processes, func(t *testing.T, s *suite) {
		sb, dir := s.shared(t), s.dir()
		output(t, sb, sh(fmt.Sprintf("mkdir -p %[1]s/d && echo -n x >%[1]s/d/f && chmod 600 %[1]s/d/f && chmod 700 %[1]s/d && chown -R %[2]d:%[3]d %[1]s/d",
			dir, s.cfg.User.UID, s.cfg.User.GID)))
		got := download(t, sb, dir)
		if got["d/f"].body != "x" || got["d/f"].uid != s.cfg.User.UID {
			t.Errorf("d/f: got %v", got["d/f"])
		}
	}},
	{"pipes and sockets do not make it hang", processes, func(t *testing.T, s *suite) {
		sb, dir := s.shared(t), s.dir()
		output(t, sb, sh(fmt.Sprintf("mkdir -p %[1]s; mkfifo %[1]s/p; echo -n x >%[1]s/f", dir)))
		if got := download(t, sb, dir); got["f"].body != "x" {
			t.Errorf("f: got %v", got["f"])
		}
	}},
	{"names of all kinds survive", 0, func(t *testing.T, s *suite) {
		sb, dir := s.shared(t), s.dir()
		names := []string{"a b", "ünï", "-n", "*", "'q'", strings.Repeat("long", 60), "new\nline"}
		tree := map[string]entry{}
		for _, n := range names {
			tree[n] = file(0o644, n)
		}
		upload(t, sb, dir, pack(t, tree))
		same(t, s, download(t, sb, dir), tree)
	}},
	{"a deep tree comes whole", 0, deepTree},
	{"a tree deeper than a name can tell is an error that says so", 0, tooDeepTree},
	{"an error of the writer is returned", 0, func(t *testing.T, s *suite) {
		sb, dir := s.shared(t), s.dir()
		upload(t, sb, dir, pack(t, map[string]entry{"f": file(0o644, strings.Repeat("x", 8<<20))}))
		if err := sb.Download(call(t), dir, &failing{}); err == nil || !strings.Contains(err.Error(), "sink is broken") {
			t.Errorf("got error %v, want the writer's own", err)
		}
		same(t, s, download(t, sb, dir), map[string]entry{"f": file(0o644, strings.Repeat("x", 8<<20))})
	}},
	{"an ended context is returned as its cause", 0, func(t *testing.T, s *suite) {
		ctx, cancel := context.WithCancelCause(call(t))
		cancel(errCause)
		var c counter
		if err := s.shared(t).Download(ctx, "/", &c); !errors.Is(err, errCause) || c.n != 0 {
			t.Errorf("got error %v and %d bytes, want the context's cause and none", err, c.n)
		}
	}},
}

func roundTrip(t *testing.T, s *suite) {
	tree := map[string]entry{
		"empty":         file(0o644, ""),
		"run.sh":        file(0o755, "#!/bin/sh\n"),
		"secret":        file(0o600, "s"),
		"suid":          file(0o4755, "s"),
		"read-only":     file(0o444, "r"),
		"bin":           file(0o644, "\x00\xff\r\n"),
		"d":             dirEntry(0o755),
		"d/closed":      dirEntry(0o700),
		"d/closed/f":    file(0o640, "f"),
		"d/empty":       dirEntry(0o1777),
		"d/locked":      dirEntry(0o555),
		"d/locked/in":   file(0o644, "in"),
		"link":          link("d/closed/f"),
		"dangling":      link("no/where"),
		"link-to-dir":   link("d"),
		"owned":         {mode: 0o644, typ: tar.TypeReg, body: "o", uid: 12345, gid: 23456},
		"d/owned-dir":   {mode: 0o750, typ: tar.TypeDir, uid: 12345, gid: 23456},
		"d/owned-dir/f": {mode: 0o400, typ: tar.TypeReg, body: "g", uid: 12346, gid: 23457},
	}
	sb, dir := s.shared(t), s.dir()
	upload(t, sb, dir, pack(t, tree))
	same(t, s, download(t, sb, dir), tree)
}

// hostileStream brings a link and then writes through it.
func hostileStream(t *testing.T, s *suite) {
	sb, dir, victim := s.shared(t), s.dir(), t.TempDir()
	entries := map[string]entry{"l": link(victim), "l/owned": file(0o644, "x")}
	_ = sb.Upload(call(t), dir, bytes.NewReader(packInOrder(t, entries, "l", "l/owned")))
	notOnHost(t, path.Join(victim, "owned"))
	entries = map[string]entry{"l2": link(path.Join(victim, "f")), "again": file(0o644, "x")}
	stream := packInOrder(t, entries, "l2", "again")
	stream = bytes.Replace(stream, []byte("again"), []byte("l2\x00\x00\x00"), 1)
	fixChecksum(stream, bytes.Index(stream[512:], []byte("l2"))+512)
	_ = sb.Upload(call(t), dir, bytes.NewReader(stream))
	notOnHost(t, path.Join(victim, "f"))
}

// fixChecksum makes the tar header at off valid again after an edit.
func fixChecksum(stream []byte, off int) {
	h := stream[off : off+512]
	copy(h[148:156], "        ")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

// hostileTarget prepares links inside the sandbox to a directory that exists
// on the host alone, and uploads and downloads through them.
func hostileTarget(t *testing.T, s *suite) {
	sb, dir, victim := s.fresh(t), s.dir(), t.TempDir()
	secret := path.Join(victim, "secret")
	writeHost(t, secret, "host secret")
	climb := strings.Repeat("../", 40) + strings.TrimPrefix(victim, "/")
	output(t, sb, sh(fmt.Sprintf(`mkdir -p %[1]s; cd %[1]s; ln -s %[2]s abs; ln -s %[3]s climb; ln -s /proc/1/root%[2]s proc`, dir, victim, climb)))
	for _, l := range []string{"abs", "climb", "proc"} {
		target := path.Join(dir, l)
		stream := pack(t, map[string]entry{"dropped": file(0o644, "x")})
		_ = sb.Upload(call(t), target, bytes.NewReader(stream))
		notOnHost(t, path.Join(victim, "dropped"))
		stream = pack(t, map[string]entry{l + "/dropped": file(0o644, "x")})
		_ = sb.Upload(call(t), dir, bytes.NewReader(stream))
		notOnHost(t, path.Join(victim, "dropped"))
		var buf bytes.Buffer
		_ = sb.Download(call(t), path.Join(target, "secret"), &buf)
		if bytes.Contains(buf.Bytes(), []byte("host secret")) {
			t.Errorf("download through %s read the host's file", l)
		}
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errCause }

// largeFile moves 128 MiB that no one keeps in memory.
func largeFile(t *testing.T, s *suite) {
	const size = 128 << 20
	sb, dir := s.shared(t), s.dir()
	sent := crc32.NewIEEE()
	r, w := io.Pipe()
	go func() {
		tw := tar.NewWriter(w)
		err := tw.WriteHeader(&tar.Header{Name: "large", Mode: 0o644, Size: size, Typeflag: tar.TypeReg})
		chunk := make([]byte, 1<<16)
		for n := 0; err == nil && n < size; n += len(chunk) {
			chunk[(n>>16)%len(chunk)]++
			sent.Write(chunk)
			_, err = tw.Write(chunk)
		}
		w.CloseWithError(errors.Join(err, tw.Close()))
	}()
	if err := sb.Upload(call(t), dir, r); err != nil {
		t.Fatalf("uploading: %v", err)
	}
	_ = r.Close()

	got := crc32.NewIEEE()
	pr, pw := io.Pipe()
	read := make(chan error, 1)
	go func() {
		tr := tar.NewReader(pr)
		_, err := tr.Next()
		if err == nil {
			_, err = io.Copy(got, tr)
		}
		_, drain := io.Copy(io.Discard, pr)
		read <- errors.Join(err, drain)
	}()
	err := sb.Download(call(t), dir+"/large", pw)
	_ = pw.Close()
	if err := errors.Join(err, <-read); err != nil {
		t.Fatalf("downloading: %v", err)
	}
	if got.Sum32() != sent.Sum32() {
		t.Error("the file came back changed")
	}
}
