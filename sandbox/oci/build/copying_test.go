package build

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/sandbox/oci/image"
)

func TestCopy(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"a.txt": "a", "b.txt": "b", "c.log": "c", "d/e": "e", "d/f/g": "g", "d/link ->": "../a.txt", "empty/": "",
		"to-a ->": "a.txt", "to-d ->": "/d", ".dockerignore": "secret\n*.bak\n!keep.bak\n", "secret/x": "x", "x.bak": "", "keep.bak": "k",
		"b/bin/x ": "", "out ->": "../../../../etc/passwd", "loop ->": "loop",
	}
	tests := []struct {
		name, instructions, want string // the entries, joined with |
	}{
		{"file to a name", "COPY a.txt /new", "new 644 0:0 a"},
		{"file into a directory that is there", "COPY a.txt /dir", "dir/a.txt 644 0:0 a"},
		{"file into a new directory", "COPY a.txt /n/m/", "n/ 755 0:0|n/m/ 755 0:0|n/m/a.txt 644 0:0 a"},
		{"parents of a file", "COPY a.txt /n/m", "n/ 755 0:0|n/m 644 0:0 a"},
		{"file over a file", "COPY a.txt /file", "file 644 0:0 a"},
		{"relative", "WORKDIR /dir\nCOPY a.txt x", "dir/x 644 0:0 a"},
		{"working directory", "WORKDIR /dir\nCOPY a.txt .", "dir/a.txt 644 0:0 a"},
		{"content of a directory", "COPY d /n", "n/ 755 0:0|n/e 644 0:0 e|n/f/ 755 0:0|n/f/g 644 0:0 g|n/link 777 0:0 -> ../a.txt"},
		{"over a directory", "COPY d/f /dir", "dir/g 644 0:0 g"},
		{"empty directory", "COPY empty /n", "n/ 755 0:0"},
		{"patterns", "COPY *.txt d/? /n/", "n/ 755 0:0|n/a.txt 644 0:0 a|n/b.txt 644 0:0 b|n/e 644 0:0 e|n/g 644 0:0 g"},
		{"pattern without a match", "COPY nothing* /n/", "n/ 755 0:0"},
		{"JSON form", `COPY ["a.txt", "/with a space"]`, "with a space 644 0:0 a"},
		{"variables", "ARG N=a\nENV TO=/x\nCOPY $N.txt ${TO}", "x 644 0:0 a"},
		{"above the context", "COPY ../../a.txt /n", "n 644 0:0 a"},
		{"source is a link", "COPY to-a /n/", "n/ 755 0:0|n/to-a 644 0:0 a"},
		{"source is an absolute link to a directory", "COPY to-d/f /n", "n/ 755 0:0|n/g 644 0:0 g"},
		{"destination is a link", "COPY a.txt /bin/", "usr/bin/a.txt 644 0:0 a"},
		{"destination is an absolute link", "COPY a.txt /var/run/x", "run/x 644 0:0 a"},
		{"destination is a link to a file", "COPY a.txt /etc/link", "file 644 0:0 a"},
		{"ignored", "COPY secret* *.bak /n/", "n/ 755 0:0|n/keep.bak 644 0:0 k"},
		{"chmod", "COPY --chmod=4711 d /n", "n/ 755 0:0|n/e 4711 0:0 e|n/f/ 4711 0:0|n/f/g 4711 0:0 g|n/link 777 0:0 -> ../a.txt"},
		{"chown by number", "COPY --chown=7 a.txt /n/", "n/ 755 7:7|n/a.txt 644 7:7 a"},
		{"chown by numbers", "COPY --chown=7:8 a.txt /n", "n 644 7:8 a"},
		{"chown by name", "COPY --chown=agent a.txt /n", "n 644 1000:1001 a"},
		{"chown by names", "COPY --chown=agent:staff a.txt /n", "n 644 1000:50 a"},
		{"chown in a variable", "ARG WHO=agent\nCOPY --chown=$WHO:0 a.txt /n", "n 644 1000:0 a"},
		{"exclude", "COPY --exclude=f --exclude=l* d /n", "n/ 755 0:0|n/e 644 0:0 e"},
		{"link", "COPY --link a.txt /n", "n 644 0:0 a"},
		{"document", "ARG W=world\nCOPY <<E <<'Q' /n/\nhello $W\nE\n$W\nQ", "n/ 755 0:0|n/E 644 0:0 hello world|n/Q 644 0:0 $W"},
		{"document to a name", "COPY --chmod=755 <<E /n\nx\nE", "n 755 0:0 x"},
		{"ADD", "ADD a.txt /n", "n 644 0:0 a"},
		{"WORKDIR", "WORKDIR /n/m", "n/ 755 0:0|n/m/ 755 0:0"},
		{"WORKDIR of a user", "USER agent\nWORKDIR /dir/m", "dir/m/ 755 1000:1001"},
		{"WORKDIR through a link", "WORKDIR /bin/m", "usr/bin/m/ 755 0:0"},
		{"WORKDIR that is there", "WORKDIR /bin", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if _, err := b.do("FROM debian\n"+tt.instructions+"\n", files); err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(strings.Join(b.placed, "|"), "\n", "")
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	for _, bad := range []string{"COPY out /n", "COPY loop /n", "COPY out/x /n", "COPY secret/x /n", "COPY a.txt/x /n"} {
		b := newBench(t)
		if _, err := b.do("FROM debian\n"+bad+"\n", files); err == nil || len(b.placed) > 0 {
			t.Errorf("%s: error %v, placed %q", bad, err, b.placed)
		}
	}
}

// A context of root's that leads out of itself shows nothing of the host.
func TestHostileContext(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	fill(t, outside, map[string]string{"host": "host"})
	b := newBench(t)
	_, err := b.do("FROM debian\nCOPY . /n\nCOPY abs/host /m/\n", map[string]string{"abs ->": outside, "rel ->": "../" + filepath.Base(outside) + "/host"})
	if err == nil || !strings.Contains(err.Error(), "line 3 ") {
		t.Errorf("a file of the host was copied: %v", err)
	}
	for _, p := range b.placed {
		if strings.HasSuffix(p, " host") {
			t.Errorf("placed %q", p)
		}
	}
}

func TestCopyFromImage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addImage("tools", image.Config{}, map[string]string{"opt/x/a": "1", "opt/x/b": "2", "opt/abs ->": "/opt/x", "opt/rel ->": "x/a", "opt/up ->": "../../../../../opt/x/b"})
	_, err := b.do("FROM debian\nCOPY --from=tools /opt/abs/a /opt/rel opt/up /n/\nCOPY --from=tools /opt/x/a /m\nCOPY --from=tools /opt/x/b /m\nCOPY --from=tools --chown=1:2 /opt /o\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"n/ 755 0:0", "n/a 644 - 1", "n/rel 644 - 1", "n/up 644 - 2", "m 644 - 1", "m 644 - 2",
		"o/ 755 1:2", "o/abs 777 1:2 -> /opt/x", "o/rel 777 1:2 -> x/a", "o/up 777 1:2 -> ../../../../../opt/x/b", "o/x/ 755 1:2", "o/x/a 644 1:2 1", "o/x/b 644 1:2 2",
	}
	got := anyOwner(b.placed)
	if os.Geteuid() == 0 { // then the owner of nothing and of everything are the same
		want, got = strings.Split(strings.ReplaceAll(strings.Join(want, "\n"), "0:0", "-"), "\n"), strings.Split(strings.ReplaceAll(strings.Join(got, "\n"), "0:0", "-"), "\n")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// archiveOf makes a tar of what archive/tar can write.
func archiveOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		text := h.Uname // stands for the content
		h.Uname = ""
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(text))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestAddArchive(t *testing.T) {
	t.Parallel()
	plain := archiveOf(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o700},
		tar.Header{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o750, Uid: 3, Gid: 4},
		tar.Header{Typeflag: tar.TypeReg, Name: "d/f", Mode: 0o4755, Uid: 3, Gid: 4, Uname: "f"},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "d/l", Mode: 0o777, Linkname: "../../x"},
		tar.Header{Typeflag: tar.TypeLink, Name: "h", Linkname: "/../d/f", Mode: 0o644},
		tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3},
		tar.Header{Typeflag: tar.TypeReg, Name: "../../up", Mode: 0o644, Uname: "u"},
	)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"a": string(plain), "a.gz": zipped.String(), "a.xz": "\xfd7zXZ\x00x", "fake.tar.gz": "\x1f\x8bno", "text.tar": "no"}
	extracted := "/ 755 0:0|n/d/ 750 3:4|n/d/f 4755 3:4 f|n/d/l 777 0:0 -> ../../x|n/h 644 0:0 = n/d/f|n/up 644 0:0 u"
	tests := []struct{ instruction, want string }{
		{"ADD a /n", "n" + extracted},
		{"ADD a.gz /n/", "n" + extracted},
		{"ADD --chown=7:8 a /n/", "n/ 755 7:8|n" + strings.TrimPrefix(extracted, "/ 755 0:0|n")},
		{"ADD fake.tar.gz text.tar /n/", "n/ 755 0:0|n/fake.tar.gz 644 0:0 \x1f\x8bno|n/text.tar 644 0:0 no"},
		{"ADD --unpack=false a.xz /n", "n 644 0:0 \xfd7zXZ\x00x"},
	}
	for _, tt := range tests {
		b := newBench(t)
		if _, err := b.do("FROM debian\n"+tt.instruction+"\n", files); err != nil {
			t.Errorf("%s: %v", tt.instruction, err)
		} else if got := strings.Join(b.placed, "|"); got != tt.want {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.instruction, got, tt.want)
		}
	}
	b := newBench(t)
	if _, err := b.do("FROM debian\nADD a.xz /n\n", files); err == nil || !strings.Contains(err.Error(), "xz") {
		t.Errorf("xz: %v", err)
	}
	b = newBench(t)
	if _, err := b.do("FROM debian\nCOPY a /n\n", files); err != nil || len(b.placed) != 1 {
		t.Errorf("COPY extracts: %v, %d entries", err, len(b.placed))
	}
	for name, damaged := range map[string]string{"cut": string(plain[:1200]), "cut in gzip": zipped.String()[:zipped.Len()-20]} {
		b = newBench(t)
		if _, err := b.do("FROM debian\nADD a /n\n", map[string]string{"a": damaged}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMounts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.do(`FROM debian
WORKDIR /dir
RUN --mount=type=cache,target=/c,mode=0700 --mount=type=tmpfs,target=t --mount=type=secret,id=s,target=/s --mount=target=m,source=a,rw x
RUN <<E
#!/x
E
`, map[string]string{"a": "content"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/c false ", "/dir/t false ", "/dir/m false content", "/dev/pipes/E true #!/x\n"}
	if diff := cmp.Diff(want, b.mounts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	dir := t.TempDir()
	fill(t, dir, map[string]string{"Dockerfile": "FROM debian\nRUN --mount=target=/m x\n", "sub/f": "1"})
	for i, text := range []string{"1", "1", "2"} {
		fill(t, dir, map[string]string{"sub/f": text})
		b.steps = nil
		if _, err := b.Build(t.Context(), Request{ContextDir: dir}); err != nil {
			t.Fatal(err)
		}
		if ran, want := len(b.steps) == 1, i != 1; ran != want {
			t.Errorf("build %d: the step was run: %v", i, ran)
		}
	}
}

// TestCachesAreOfOneContext: nothing that a build leaves in a cache gets into the image of
// another context, whatever id it gives and however equal the two are.
func TestCachesAreOfOneContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const cached = "FROM debian\nRUN --mount=type=cache,id=shared,target=/c x\n"
	for i := range 2 {
		if _, err := b.do(cached, nil); err != nil {
			t.Fatal(err)
		}
		if len(b.steps) != i+1 || len(b.caches) != i+1 || slices.Index(b.caches, b.caches[i]) != i {
			t.Errorf("after build %d: %d steps were run, with the caches %q", i, len(b.steps), b.caches)
		}
	}
	b = newBench(t)
	dir := t.TempDir()
	fill(t, dir, map[string]string{"Dockerfile": cached})
	for _, text := range []string{cached, cached + "RUN --mount=type=cache,id=shared,target=/c y\n"} {
		fill(t, dir, map[string]string{"Dockerfile": text})
		if _, err := b.Build(t.Context(), Request{ContextDir: dir}); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.steps) != 2 || len(b.caches) != 2 || b.caches[0] != b.caches[1] {
		t.Errorf("a context's own: %d steps were run, with the caches %q", len(b.steps), b.caches)
	}
}

func TestWriteBelow(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	fill(t, src, map[string]string{"d/f": "f", "d/l ->": "/etc/passwd"})
	if err := os.Chmod(filepath.Join(src, "d"), 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(src, "d"), 0o700) })
	img := image.Image{Layers: []image.Layer{{Dir: src}}}
	p, err := layOut(&copying{sources: []string{"/"}, dest: "/m", image: &img}, img.Files(), image.Image{}.Files(), "/")
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if _, err := p.writeBelow(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(to, "m/d"), 0o700) })
	if data, err := os.ReadFile(filepath.Join(to, "m/d/f")); err != nil || string(data) != "f" {
		t.Errorf("file %q, %v", data, err)
	}
	if link, err := os.Readlink(filepath.Join(to, "m/d/l")); err != nil || link != "/etc/passwd" {
		t.Errorf("link %q, %v", link, err)
	}
	if info, err := os.Stat(filepath.Join(to, "m/d")); runtime.GOOS != "windows" && (err != nil || info.Mode().Perm() != 0o500) {
		t.Errorf("directory %v, %v", info, err)
	}
}

// What commands leave in an upper directory must not lead the removal of
// mount points to files of the host.
func TestRemoveStubs(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	fill(t, host, map[string]string{"victim/": ""})
	base := image.Image{Layers: []image.Layer{{Dir: t.TempDir()}}}
	fill(t, base.Layers[0].Dir, map[string]string{"there/": ""})
	upper := t.TempDir()
	fill(t, upper, map[string]string{
		"evil ->": host, "a/b/c/": "", "used/x/kept": "k", "there/stub/": "", "file": "", "full": "x", "link ->": "a",
	})
	targets := []string{"/evil/victim", "/a/b/c", "/used/x", "/there/stub", "/file", "/full", "/link", "/nothing"}
	if err := removeStubs(upper, base, targets); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(host, "victim")); err != nil {
		t.Errorf("a directory of the host: %v", err)
	}
	var left []string
	for _, name := range []string{"evil", "a", "used/x/kept", "there", "there/stub", "file", "full", "link"} {
		if _, err := os.Lstat(filepath.Join(upper, name)); err == nil {
			left = append(left, name)
		}
	}
	if want := []string{"evil", "used/x/kept", "there", "full", "link"}; !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}

func TestFindOwner(t *testing.T) {
	t.Parallel()
	root := newBench(t).images["debian"].Files()
	for spec, want := range map[string]string{
		"root": "0:0", "agent": "1000:1001", "agent:": "1000:1001", "agent:staff": "1000:50", "5": "5:5", "5:6": "5:6", "0:staff": "0:50", "agent:7": "1000:7",
		"": "", "who": "", "agent:who": "", "-1": "", "1:-1": "", "99999999999": "", ":staff": "", "agent:staff:x": "",
	} {
		o, err := findOwner(root, spec)
		if got := fmt.Sprintf("%d:%d", o.UID, o.GID); err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %s, %v, want %q", spec, got, err, want)
		}
	}
}
